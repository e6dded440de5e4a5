#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "base/log.hpp"
#include "bootstrap/share_memory.hpp"
#include "bootstrap/together.hpp"
#include "communicator/state.hpp"
#include "group/device_facts.hpp"
#include "group/wiring.hpp"

namespace rondo::detail::gpu {
namespace {

// The ranks' communicator over host memory, for exchanging blobs.
class HostBootstrap final : public Bootstrap {
 public:
  explicit HostBootstrap(rondo::Communicator& host) : host_(host) {}

  [[nodiscard]] int rank() const override { return host_.rank(); }
  [[nodiscard]] int size() const override { return host_.size(); }
  void all_gather(const void* mine, void* all, std::size_t bytes) override {
    Call call;
    call.collective = Collective::all_gather;
    call.in = mine;
    call.out = all;
    call.count = bytes * static_cast<std::size_t>(size());
    call.type = DataType::u8;
    call.options.algorithm = Algorithm::ring;
    host_.run(call);
  }

 private:
  rondo::Communicator& host_;
};

// How a rank shows its block to the others.
struct Offer {
  const std::shared_ptr<DeviceMemory>* memory = nullptr;  // in the same process
  api::IpcHandle handle;                                  // in others
  std::array<char, 128> why_no_handle{};
};

// What a rank knows of its way to another's block.
struct Way {
  bool works = false;
  std::array<char, 160> reason{};  // why not
};

class Joiner {
 public:
  Joiner(rondo::Communicator& host, const cuda::Options& options)
      : host_state_(state_of(host)),
        bootstrap_(host),
        options_(options),
        rank_(host.rank()),
        size_(host.size()) {}

  DeviceWiring wire() {
    wiring_.rank = rank_;
    gather_facts();
    order_ring();
    make_block();
    reach_others();
    test_ways();
    choose_carriers();
    share_control();
    refuse_fallbacks();
    PumpEdges pumped;
    together(bootstrap_, [&] { pumped = connect(); });
    // What fails on one rank has been thrown by all: no rank waits alone in what MPI does with all of them.
    if (any_by_mpi()) together(bootstrap_, [&] { make_pump(std::move(pumped)); });
    return std::move(wiring_);
  }

 private:
  [[nodiscard]] int index_on_host() const {
    const std::vector<RankPlace>& places = host_state_.engine.wiring().topology.places;
    const auto end = places.begin() + rank_;
    return static_cast<int>(std::count_if(places.begin(), end,
                                          [&](const RankPlace& p) { return p.host == end->host; }));
  }

  void gather_facts() {
    DeviceRankFacts mine;
    together(bootstrap_, [&] {
      validate_options(options_);
      wiring_.device = device_for(options_, index_on_host());
      const DeviceScope scope(wiring_.device);
      mine = facts_of_this_rank(options_, wiring_.device, size_);
    });
    group_.emplace(bootstrap_.exchange(mine));
    group_->require_equal_options();
    leaves_host_ = std::any_of(group_->hosts().begin(), group_->hosts().end(),
                               [&](const std::string& one) { return one != group_->hosts()[0]; });
    wiring_.geometry = group_->choose_geometry(leaves_host_);
    wiring_.threads = group_->of(0).threads;
    wiring_.topology.places = group_->places();
  }

  // Rows of values, one for each pair of ranks.
  template <class T>
  std::vector<std::vector<T>> exchange_rows(const std::vector<T>& mine) {
    const auto n = static_cast<std::size_t>(size_);
    std::vector<T> flat(n * n);
    bootstrap_.all_gather(mine.data(), flat.data(), n * sizeof(T));
    std::vector<std::vector<T>> rows;
    for (std::size_t i = 0; i < n; ++i) {
      rows.emplace_back(flat.begin() + static_cast<std::ptrdiff_t>(i * n),
                        flat.begin() + static_cast<std::ptrdiff_t>((i + 1) * n));
    }
    return rows;
  }

  void order_ring() {
    std::vector<DeviceLink> mine;
    together(bootstrap_, [&] { mine = links_of(*group_, rank_); });
    links_ = exchange_rows(mine);
    wiring_.topology.ring = device_ring(group_->hosts(), links_);
    edges_ = schedule_edges(wiring_.topology.ring, {Algorithm::ring, Algorithm::naive});
    for (int rank = 0; rank < size_; ++rank) {
      layouts_.push_back(layout_of(rank, edges_, wiring_.geometry));
    }
  }

  void make_block() {
    together(bootstrap_, [this] {
      wiring_.handles.emplace(wiring_.device);
      wiring_.block = std::make_shared<DeviceMemory>(wiring_.device, layout(rank_).bytes);
      const DeviceScope scope(wiring_.device);
      api::load_kernels();
    });
  }

  // Maps every block that can be reached.
  void reach_others() {
    Offer mine;
    mine.memory = &wiring_.block;
    try {
      const DeviceScope scope(wiring_.device);
      mine.handle = api::export_memory(wiring_.block->data());
    } catch (const CudaError& error) {
      put(mine.why_no_handle, error.what());
    }
    const std::vector<Offer> offers = bootstrap_.exchange(mine);
    ways_.resize(static_cast<std::size_t>(size_));
    blocks_.resize(static_cast<std::size_t>(size_), nullptr);
    for (int rank = 0; rank < size_; ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      try {
        blocks_[index] = reach(rank, offers[index]);
      } catch (const CudaError& error) {
        put(ways_[index].reason, error.what());
      }
    }
    // Nobody lets go of a block before all have taken hold of it.
    agree(bootstrap_, nullptr);
  }

  // Null, with a reason, where there is no way.
  std::byte* reach(int rank, const Offer& offer) {
    Way& way = ways_[static_cast<std::size_t>(rank)];
    if (rank == rank_) return wiring_.block->data();
    if (!group_->same_host(rank, rank_)) return nullptr;
    if (options_.peer_access == cuda::PeerAccess::avoided) {
      put(way.reason, "PeerAccess::avoided");
      return nullptr;
    }
    if (group_->same_process(rank, rank_)) {
      const int theirs = group_->of(rank).device_number;
      if (!group_->same_device(rank, rank_)) {
        if (!api::can_reach(wiring_.device, theirs)) {
          put(way.reason, fmt::format("CUDA says that {} cannot reach {}", group_->device_of(rank_),
                                      group_->device_of(rank)));
          return nullptr;
        }
        api::enable_peer(wiring_.device, theirs);
      }
      wiring_.of_this_process.push_back(*offer.memory);
      return (*offer.memory)->data();
    }
    if (offer.why_no_handle[0] != '\0') {
      put(way.reason, offer.why_no_handle.data());
      return nullptr;
    }
    wiring_.of_others.emplace_back(wiring_.device, offer.handle);
    return wiring_.of_others.back().data();
  }

  // Every rank writes a pattern of its own into every block that it reaches; then every rank looks at
  // what has come.
  void test_ways() {
    const auto row = [&](int owner, int writer) {
      return blocks_[static_cast<std::size_t>(owner)] + layout(owner).probes +
             static_cast<std::size_t>(writer) * kProbeWords * sizeof(std::uint64_t);
    };
    const auto seed = [&](int owner, int writer) {
      return 1 + static_cast<std::uint64_t>(owner) * static_cast<std::uint64_t>(size_) +
             static_cast<std::uint64_t>(writer);
    };
    together(bootstrap_, [&] {
      const DeviceScope scope(wiring_.device);
      for (int rank = 0; rank < size_; ++rank) {
        if (blocks_[static_cast<std::size_t>(rank)] == nullptr) continue;
        api::write_pattern(row(rank, rank_), kProbeWords, seed(rank, rank_));
      }
    });
    std::vector<std::uint64_t> wrong;
    together(bootstrap_, [&] {
      const DeviceScope scope(wiring_.device);
      for (int writer = 0; writer < size_; ++writer) {
        wrong.push_back(api::wrong_words(row(rank_, writer), kProbeWords, seed(rank_, writer)));
      }
    });
    const auto wrong_at = exchange_rows(wrong);
    for (int rank = 0; rank < size_; ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      if (blocks_[index] == nullptr) continue;
      const std::uint64_t lost = wrong_at[index][static_cast<std::size_t>(rank_)];
      ways_[index].works = lost == 0;
      if (lost != 0) {
        put(ways_[index].reason,
            fmt::format(
                "{} of {} words of a test pattern did not arrive (an IOMMU or PCIe ACS in the "
                "way?)",
                lost, kProbeWords));
      }
    }
    all_ways_ = exchange_rows(ways_);
  }

  [[nodiscard]] const Way& way(int from, int to) const {
    return all_ways_[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  }

  void choose_carriers() {
    for (const ScheduleEdge& edge : edges_) {
      const auto [from, to] = edge.ranks;
      Edge result{from, to, Carrier::mpi, {}, edge.in_ring()};
      if (!group_->same_host(from, to)) {
        result.reason = fmt::format("hosts {} and {}", group_->of(from).place.host.data(),
                                    group_->of(to).place.host.data());
      } else if (way(from, to).works && way(to, from).works) {
        const bool one_process = group_->same_process(from, to);
        result.carrier = one_process ? Carrier::p2p : Carrier::ipc;
        result.reason = fmt::format(
            "{}, {}", name(links_[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)]),
            one_process ? "one process" : "two processes");
      } else {
        result.carrier = Carrier::pinned;
        const bool first = !way(from, to).works;
        result.reason =
            fmt::format("rank {} towards rank {}: {}", first ? from : to, first ? to : from,
                        (first ? way(from, to) : way(to, from)).reason.data());
      }
      wiring_.topology.edges.push_back(result);
    }
    if (wiring_.geometry.inbox_units > 0) choose_one_shot();
  }

  // one_shot needs every way, those of pairs that share no edge too.
  void choose_one_shot() {
    for (int from = 0; from < size_; ++from) {
      for (int to = 0; to < size_; ++to) {
        if (way(from, to).works) continue;
        one_shot_lost_ = fmt::format("rank {} does not reach rank {}: {}", from, to,
                                     way(from, to).reason.data());
        return;
      }
    }
    wiring_.one_shot_bytes = group_->of(0).one_shot_bytes;
  }

  // All ranks know all edges, and so come to the same end.
  void refuse_fallbacks() const {
    const bool required = options_.peer_access == cuda::PeerAccess::required;
    for (const Edge& edge : wiring_.topology.edges) {
      const bool fallback = edge.carrier == Carrier::pinned ||
                            (edge.carrier == Carrier::mpi && group_->same_host(edge.from, edge.to));
      if (required && fallback) {
        throw TransportError(
            fmt::format("PeerAccess::required refuses {} from rank {} to rank {}: {}; choose "
                        "PeerAccess::automatic "
                        "to allow it",
                        edge.carrier == Carrier::pinned ? "pinned host memory" : "MPI", edge.from,
                        edge.to, edge.reason));
      }
      if (edge.from != rank_) continue;
      const bool unwanted = fallback && options_.peer_access == cuda::PeerAccess::automatic;
      log(unwanted ? LogLevel::warning : LogLevel::info,
          "rank {} of {} on {}: to rank {} by {} ({})", rank_, size_, group_->device_of(rank_),
          edge.to, name(edge.carrier), edge.reason);
    }
    if (one_shot_lost_.empty() || options_.peer_access == cuda::PeerAccess::avoided) return;
    if (required) {
      throw TransportError(fmt::format("PeerAccess::required, but {}", one_shot_lost_));
    }
    if (rank_ == 0) {
      log(LogLevel::warning, "small calls go without one_shot: {}", one_shot_lost_);
    }
  }

  // One segment a host, as for host memory. Where ranks of a host cannot share it, MPI stands in.
  void share_control() {
    int leader = 0;
    while (!group_->same_host(leader, rank_)) ++leader;
    int here = 0;
    for (int rank = 0; rank < size_; ++rank) here += group_->same_host(rank, rank_) ? 1 : 0;
    std::vector<PinnedFifo> fifos;
    for (std::size_t i = 0; i < edges_.size(); ++i) {
      const Edge& edge = wiring_.topology.edges[i];
      if (edge.carrier == Carrier::pinned && group_->same_host(edge.from, rank_)) {
        fifos.push_back({static_cast<int>(i), geometry().fifo_of(edges_[i]),
                         geometry().channels_of(edges_[i])});
      }
    }
    const std::size_t bytes = ControlSegment::bytes_for(size_, geometry().channels, fifos);
    SharedMemory shared = share_memory(bootstrap_, leader, here > 1, bytes);
    const auto mapped = [&](int rank) { return shared.mapped[static_cast<std::size_t>(rank)]; };
    for (Edge& edge : wiring_.topology.edges) {
      if (edge.carrier == Carrier::mpi || (mapped(edge.from) && mapped(edge.to))) continue;
      // Kernels of both must see one abort word, and pinned FIFOs lie in that memory.
      const auto culprit = static_cast<std::size_t>(mapped(edge.from) ? edge.to : edge.from);
      edge.carrier = Carrier::mpi;
      edge.reason = fmt::format("one host, but rank {} {}", culprit, shared.reasons[culprit]);
      wiring_.one_shot_bytes = 0;
    }
    for (int rank = 0; rank < size_; ++rank) {
      if (rank == rank_ || (mapped(rank_) && mapped(rank) && group_->same_host(rank, rank_))) {
        wiring_.ranks_sharing.push_back(rank);
      }
    }
    together(bootstrap_, [&] {
      if (shared.mapping.data() == nullptr) {
        fifos.clear();
        shared.mapping = map_private(ControlSegment::bytes_for(size_, geometry().channels, {}));
      }
      wiring_.control = ControlSegment(PinnedMapping(wiring_.device, std::move(shared.mapping)),
                                       size_, geometry().channels, std::move(fifos));
    });
  }

  // Returns the edges that a pump is to carry.
  PumpEdges connect() {
    const DeviceScope scope(wiring_.device);
    const auto ends =
        static_cast<std::size_t>(geometry().channels) * static_cast<std::size_t>(size_);
    std::vector<SendEnd> to(ends);
    std::vector<RecvEnd> from(ends);
    PumpEdges pumped;
    const std::vector<std::size_t> position = positions_of(wiring_.topology.ring);
    for (std::size_t i = 0; i < edges_.size(); ++i) {
      const auto [sender, receiver] = edges_[i].ranks;
      if (sender != rank_ && receiver != rank_) continue;
      for (int channel = 0; channel < geometry().channels_of(edges_[i]); ++channel) {
        const FifoMemory fifo = fifo_of(static_cast<int>(i), channel, pumped);
        const auto at = [&](int peer) {
          return static_cast<std::size_t>(channel) * static_cast<std::size_t>(size_) +
                 position[static_cast<std::size_t>(peer)];
        };
        if (sender == rank_) {
          to[at(receiver)] = SendEnd(fifo);
        } else {
          from[at(sender)] = RecvEnd(fifo);
        }
      }
    }
    upload(to, from);
    if (any_by_mpi()) require_pump();
    return pumped;
  }

  // One channel of an edge of this rank, as its kernels see it.
  FifoMemory fifo_of(int edge, int channel, PumpEdges& pumped) {
    const auto index = static_cast<std::size_t>(edge);
    const auto [sender, receiver] = edges_[index].ranks;
    const FifoGeometry& sizes = geometry().fifo_of(edges_[index]);
    const Carrier carrier = wiring_.topology.edges[index].carrier;
    if (carrier == Carrier::pinned) return wiring_.control.fifo_on_device(edge, channel);
    if (carrier != Carrier::mpi) {
      const auto part = [&](int rank) {
        return blocks_[static_cast<std::size_t>(rank)] + layout(rank).edges[index];
      };
      return fifo_between(part(sender), part(receiver), channel, sizes);
    }
    PinnedMapping& memory =
        wiring_.pumped.emplace_back(wiring_.device, map_private(contiguous_fifo_bytes(sizes)));
    const FifoMemory on_host = contiguous_fifo(memory.host(), sizes);
    const AlgorithmSet algorithms = edges_[index].algorithms;
    if (sender == rank_) {
      pumped.out.push_back({receiver, algorithms, channel, RecvEnd(on_host)});
    } else {
      pumped.in.push_back({sender, algorithms, channel, SendEnd(on_host)});
    }
    return contiguous_fifo(memory.device(), sizes);
  }

  // The tables that the rank's kernels walk.
  void upload(const std::vector<SendEnd>& to, const std::vector<RecvEnd>& from) {
    std::byte* base = wiring_.block->data();
    const BlockLayout& mine = layout(rank_);
    std::vector<std::byte*> inboxes;
    for (int rank = 0; rank < size_; ++rank) {
      std::byte* block = blocks_[static_cast<std::size_t>(rank)];
      inboxes.push_back(block == nullptr ? nullptr : block + layout(rank).inbox);
    }
    const auto put_table = [&](std::size_t offset, const auto& table) {
      api::copy(base + offset, table.data(), table.size() * sizeof(table[0]));
    };
    put_table(mine.ring, wiring_.topology.ring);
    put_table(mine.to, to);
    put_table(mine.from, from);
    put_table(mine.inboxes, inboxes);
    RankView& view = wiring_.view;
    view.rank = rank_;
    view.size = size_;
    view.ring = reinterpret_cast<std::int32_t*>(base + mine.ring);
    view.channels = reinterpret_cast<ChannelState*>(base + mine.states);
    view.to = reinterpret_cast<SendEnd*>(base + mine.to);
    view.from = reinterpret_cast<RecvEnd*>(base + mine.from);
    view.inboxes = reinterpret_cast<std::byte* const*>(base + mine.inboxes);
    view.inbox_units = geometry().inbox_units;
    view.control = wiring_.control.on_device(rank_);
  }

  [[nodiscard]] bool any_by_mpi() const {
    return std::any_of(wiring_.topology.edges.begin(), wiring_.topology.edges.end(),
                       [](const Edge& edge) { return edge.carrier == Carrier::mpi; });
  }

  void require_pump() const {
    const Pump* pump = host_state_.engine.wiring().pump.get();
    if (pump == nullptr) {
      throw TransportError(
          "some ranks share no memory, and the host communicator was made without MPI; make it "
          "with "
          "from_mpi");
    }
    const std::string objection = pump->objection_to_progress_thread();
    if (!objection.empty()) throw UsageError(objection);
  }

  // Collective.
  void make_pump(PumpEdges pumped) {
    const Wiring& host = host_state_.engine.wiring();
    for (int rank = 0; rank < size_; ++rank) {
      const auto& sharing = wiring_.ranks_sharing;
      if (std::find(sharing.begin(), sharing.end(), rank) == sharing.end()) {
        pumped.ranks_elsewhere.push_back(rank);
      }
    }
    pumped.board = &host.segment->board();
    wiring_.pump = host.pump->another(std::move(pumped));
    wiring_.pump->drive_all();  // nobody tells it of the calls
  }

  [[nodiscard]] const DeviceGeometry& geometry() const { return wiring_.geometry; }
  [[nodiscard]] const BlockLayout& layout(int rank) const {
    return layouts_[static_cast<std::size_t>(rank)];
  }

  CommunicatorState& host_state_;
  HostBootstrap bootstrap_;
  const cuda::Options& options_;
  int rank_;
  int size_;
  std::optional<Group> group_;
  bool leaves_host_ = false;
  std::vector<std::vector<DeviceLink>> links_;
  std::vector<ScheduleEdge> edges_;
  std::vector<BlockLayout> layouts_;  // by rank
  std::vector<std::byte*> blocks_;    // by rank, as this rank reaches them; null where it does not
  std::vector<Way> ways_;             // from this rank to each
  std::vector<std::vector<Way>> all_ways_;
  std::string one_shot_lost_;  // why there is none
  DeviceWiring wiring_;
};

}  // namespace

DeviceWiring wire_devices(rondo::Communicator& host, const cuda::Options& options) {
  return Joiner(host, options).wire();
}

}  // namespace rondo::detail::gpu
