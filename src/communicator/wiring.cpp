#include "communicator/wiring.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "base/log.hpp"
#include "carrier/memory.hpp"
#include "topology/machine.hpp"
#include "topology/ring_order.hpp"

namespace rondo::detail {
namespace {

// Slots that stay in a core's L2 together with the buffers they are combined with.
constexpr FifoGeometry kShmGeometry{128 * 1024, 8};
// Slices below MPI's usual eager limit for TCP (64 KiB), enough of them to cover a round trip.
constexpr FifoGeometry kMpiGeometry{32 * 1024, 16};

// What every rank tells the others. Fixed size: it travels as bytes.
struct RankFacts {
  std::array<char, 256> host{};
  std::array<char, 64> boot{};
  std::uint64_t process_namespace = 0;
  std::int64_t process_id = 0;
  std::int32_t numa_node = -1;
  std::uint32_t slots = 0;
  std::uint64_t slot_bytes = 0;
  CarrierChoice carrier = CarrierChoice::automatic;
};

struct SegmentOffer {  // from the lowest rank of each host
  bool made = false;
  std::array<char, 64> name{};
  std::array<char, 512> error{};
};

struct SegmentAnswer {  // from every rank
  bool mapped = false;
  std::array<char, 256> error{};
};

template <std::size_t N>
void put(std::array<char, N>& to, const std::string& from) {
  const std::size_t length = std::min(from.size(), N - 1);
  std::memcpy(to.data(), from.data(), length);
  to[length] = '\0';
}

// Changes with every start of the machine, so that equal host names on two machines stay apart.
std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::getline(file, text);
  return text;
}

void validate_geometry(const CommunicatorOptions& options) {
  constexpr std::size_t kLargestSlot = std::size_t{1} << 30U;
  if (options.slot_bytes % 64 != 0 || options.slot_bytes > kLargestSlot) {
    throw UsageError(fmt::format(
        "CommunicatorOptions::slot_bytes is {}; it must be a multiple of 64 up to 1 GiB, or 0",
        options.slot_bytes));
  }
  if (options.slots == 1 || options.slots > 4096) {
    throw UsageError(fmt::format(
        "CommunicatorOptions::slots is {}; it must be 2 to 4096, or 0: a rank holds one slot while "
        "it waits for the next",
        options.slots));
  }
  if (options.carrier > CarrierChoice::mpi) {
    throw UsageError("CommunicatorOptions::carrier is not a CarrierChoice");
  }
}

FifoGeometry choose_geometry(const CommunicatorOptions& options, bool any_mpi) {
  FifoGeometry geometry = any_mpi ? kMpiGeometry : kShmGeometry;
  if (options.slot_bytes != 0) geometry.slot_bytes = options.slot_bytes;
  if (options.slots != 0) geometry.slots = options.slots;
  return geometry;
}

std::vector<RankPlace> places_of(const std::vector<RankFacts>& facts) {
  std::vector<RankPlace> places;
  for (const RankFacts& rank : facts) {
    places.push_back({rank.host.data(), static_cast<int>(rank.process_id), rank.numa_node});
  }
  return places;
}

std::vector<Place> order_keys(const std::vector<RankFacts>& facts) {
  std::vector<Place> keys;
  for (const RankFacts& rank : facts) {
    keys.push_back({fmt::format("{} {}", rank.host.data(), rank.boot.data()), rank.numa_node});
  }
  return keys;
}

// Positions in the ring, by rank.
std::vector<std::size_t> positions_of(const std::vector<int>& ring) {
  std::vector<std::size_t> positions(ring.size());
  for (std::size_t i = 0; i < ring.size(); ++i) positions[static_cast<std::size_t>(ring[i])] = i;
  return positions;
}

// Connects the ends of `rank` to the FIFOs that `segment` carries.
void connect_segment(Wiring& wiring, const std::vector<RankPair>& edges) {
  const auto position = positions_of(wiring.topology.ring);
  for (const RankPair& edge : edges) {
    const auto fifo = wiring.segment->fifo(edge);
    if (!fifo) continue;
    if (edge.from == wiring.rank) {
      wiring.to[position[static_cast<std::size_t>(edge.to)]] = SendEnd(*fifo);
    }
    if (edge.to == wiring.rank) {
      wiring.from[position[static_cast<std::size_t>(edge.from)]] = RecvEnd(*fifo);
    }
  }
}

Wiring empty_wiring(int rank, int size, const FifoGeometry& geometry, std::vector<int> ring) {
  Wiring wiring;
  wiring.rank = rank;
  wiring.size = size;
  wiring.geometry = geometry;
  wiring.topology.ring = std::move(ring);
  wiring.to.resize(static_cast<std::size_t>(size));
  wiring.from.resize(static_cast<std::size_t>(size));
  return wiring;
}

bool crowded(std::size_t ranks_here) {
  const long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  return cores > 0 && ranks_here > static_cast<std::size_t>(cores);
}

RankFacts my_facts(const CommunicatorOptions& options) {
  RankFacts facts;
  put(facts.host, host_name());
  put(facts.boot, boot_id());
  facts.process_namespace = process_namespace();
  facts.process_id = ::getpid();
  facts.numa_node = bound_numa_node();
  facts.slots = options.slots;
  facts.slot_bytes = options.slot_bytes;
  facts.carrier = options.carrier;
  return facts;
}

void require_same_options(const std::vector<RankFacts>& facts) {
  for (std::size_t rank = 1; rank < facts.size(); ++rank) {
    const RankFacts& a = facts[0];
    const RankFacts& b = facts[rank];
    if (a.slot_bytes == b.slot_bytes && a.slots == b.slots && a.carrier == b.carrier) continue;
    throw UsageError(fmt::format(
        "rank 0 and rank {} were given different CommunicatorOptions: slot_bytes {} and {}, slots "
        "{} and {}, carrier {} and {}; they must be the same on all ranks",
        rank, a.slot_bytes, b.slot_bytes, a.slots, b.slots, static_cast<int>(a.carrier),
        static_cast<int>(b.carrier)));
  }
}

// The wiring of one process, step by step; every step that exchanges is made by all ranks.
class ProcessWirer {
 public:
  ProcessWirer(Bootstrap& bootstrap, const CommunicatorOptions& options)
      : bootstrap_(bootstrap), options_(options), rank_(bootstrap.rank()) {}

  Wiring wire(const PumpFactory& make_pump) {
    gather_facts();
    share_segment();
    Wiring wiring = empty_wiring(rank_, bootstrap_.size(), geometry_, ring_);
    wiring.topology.places = places_of(facts_);
    describe_edges(wiring.topology);
    wiring.segment = segment_;
    connect_segment(wiring, local_edges_);
    connect_pump(wiring, make_pump);
    watch_peers(wiring);
    wiring.crowded = crowded(ranks_here_.size());
    return wiring;
  }

 private:
  void gather_facts() {
    facts_ = bootstrap_.exchange(my_facts(options_));
    require_same_options(facts_);
    keys_ = order_keys(facts_);
    ring_ = ring_order(keys_);
    edges_ = schedule_edges(ring_);
    for (int rank = 0; rank < bootstrap_.size(); ++rank) {
      if (same_host(rank, rank_)) ranks_here_.push_back(rank);
    }
    bool any_mpi = options_.carrier == CarrierChoice::mpi;
    for (int rank = 0; rank < bootstrap_.size(); ++rank) any_mpi |= !same_host(rank, 0);
    geometry_ = choose_geometry(options_, any_mpi);
    if (options_.carrier == CarrierChoice::mpi) return;
    for (const RankPair& edge : edges_) {
      if (same_host(edge.from, rank_) && same_host(edge.to, rank_)) local_edges_.push_back(edge);
    }
  }

  [[nodiscard]] bool same_host(int a, int b) const {
    return keys_[static_cast<std::size_t>(a)].host == keys_[static_cast<std::size_t>(b)].host;
  }
  [[nodiscard]] int leader_of(int rank) const {
    int leader = 0;
    while (!same_host(leader, rank)) ++leader;
    return leader;
  }

  // One segment a host, made by its lowest rank, unlinked as soon as all have mapped it or failed
  // to.
  void share_segment() {
    const std::size_t bytes = HostSegment::bytes_for(local_edges_.size(), geometry_);
    Mapping mapping;
    SegmentOffer offer;
    if (leader_of(rank_) == rank_) {
      try {
        NamedMapping created = create_shared(bytes);
        mapping = std::move(created.mapping);
        put(offer.name, created.name);
        offer.made = true;
      } catch (const TransportError& error) {
        put(offer.error, error.what());
      }
    }
    answers_ = answer_offers(bootstrap_.exchange(offer), mapping, bytes, offer);
    if (mapping.data() == nullptr) {  // not shared: an abort board of my own, and no FIFOs
      local_edges_.clear();
      mapping = map_private(HostSegment::bytes_for(0, geometry_));
    }
    segment_ = std::make_shared<HostSegment>(std::move(mapping), local_edges_, geometry_);
  }

  std::vector<SegmentAnswer> answer_offers(const std::vector<SegmentOffer>& offers,
                                           Mapping& mapping, std::size_t bytes,
                                           const SegmentOffer& mine) {
    const SegmentOffer& offer = offers[static_cast<std::size_t>(leader_of(rank_))];
    SegmentAnswer answer;
    try {
      if (offer.made && mapping.data() == nullptr) mapping = open_shared(offer.name.data(), bytes);
      answer.mapped = offer.made;
    } catch (const TransportError& error) {
      put(answer.error, error.what());
    }
    const std::vector<SegmentAnswer> answers = bootstrap_.exchange(answer);
    if (mine.made) unlink_shared(mine.name.data());
    for (std::size_t rank = 0; rank < offers.size(); ++rank) {
      if (leader_of(static_cast<int>(rank)) == static_cast<int>(rank) && !offers[rank].made) {
        throw TransportError(fmt::format("rank {} on host {}: {}", rank, facts_[rank].host.data(),
                                         offers[rank].error.data()));
      }
    }
    return answers;
  }

  [[nodiscard]] bool mapped(int rank) const {
    return answers_[static_cast<std::size_t>(rank)].mapped;
  }

  void describe_edges(Topology& topology) const {
    for (std::size_t i = 0; i < edges_.size(); ++i) {
      Edge edge = described(edges_[i]);
      edge.in_ring = ring_.size() > 1 && i < ring_.size();
      if (edge.carrier == Carrier::mpi && options_.carrier == CarrierChoice::shm) {
        throw TransportError(
            fmt::format("CarrierChoice::shm refuses the edge from rank {} to rank {}: {}",
                        edge.from, edge.to, edge.reason));
      }
      topology.edges.push_back(std::move(edge));
    }
  }

  [[nodiscard]] Edge described(const RankPair& pair) const {
    Edge edge{pair.from, pair.to, Carrier::mpi, {}, false};
    if (options_.carrier == CarrierChoice::mpi) {
      edge.reason = "CarrierChoice::mpi";
    } else if (!same_host(pair.from, pair.to)) {
      edge.reason =
          fmt::format("hosts {} and {}", facts_[static_cast<std::size_t>(pair.from)].host.data(),
                      facts_[static_cast<std::size_t>(pair.to)].host.data());
    } else if (!mapped(pair.from) || !mapped(pair.to)) {
      const int culprit = mapped(pair.from) ? pair.to : pair.from;
      edge.reason = fmt::format("one host, but rank {} {}", culprit,
                                answers_[static_cast<std::size_t>(culprit)].error.data());
      if (pair.from == rank_) {
        log(LogLevel::warning, "rank {}: falls back to MPI towards rank {}: {}", rank_, pair.to,
            edge.reason);
      }
    } else {
      edge.carrier = Carrier::shm;
      edge.reason = fmt::format("host {}", facts_[static_cast<std::size_t>(pair.from)].host.data());
    }
    return edge;
  }

  // FIFOs whose other side is the pump.
  void connect_pump(Wiring& wiring, const PumpFactory& make_pump) {
    PumpEdges carried;
    const auto position = positions_of(ring_);
    for (const Edge& edge : wiring.topology.edges) {
      if (edge.carrier != Carrier::mpi || (edge.from != rank_ && edge.to != rank_)) continue;
      wiring.private_fifos.push_back(map_private(contiguous_fifo_bytes(geometry_)));
      const FifoMemory fifo = contiguous_fifo(wiring.private_fifos.back().data(), geometry_);
      if (edge.from == rank_) {
        wiring.to[position[static_cast<std::size_t>(edge.to)]] = SendEnd(fifo);
        carried.out.push_back({edge.to, RecvEnd(fifo)});
      } else {
        wiring.from[position[static_cast<std::size_t>(edge.from)]] = RecvEnd(fifo);
        carried.in.push_back({edge.from, SendEnd(fifo)});
      }
    }
    const bool any_mpi = std::any_of(wiring.topology.edges.begin(), wiring.topology.edges.end(),
                                     [](const Edge& edge) { return edge.carrier == Carrier::mpi; });
    if (!any_mpi) return;
    for (int rank = 0; rank < bootstrap_.size(); ++rank) {
      if (rank != rank_ && !(same_host(rank, rank_) && mapped(rank) && mapped(rank_))) {
        carried.ranks_elsewhere.push_back(rank);
      }
    }
    carried.board = &wiring.segment->board();
    wiring.pump = make_pump(std::move(carried));
  }

  void watch_peers(Wiring& wiring) const {
    const RankFacts& me = facts_[static_cast<std::size_t>(rank_)];
    for (const int rank : ranks_here_) {
      const RankFacts& peer = facts_[static_cast<std::size_t>(rank)];
      if (rank == rank_ || peer.process_namespace != me.process_namespace) continue;
      wiring.peers.watch(rank, static_cast<int>(peer.process_id));
    }
  }

  Bootstrap& bootstrap_;
  const CommunicatorOptions& options_;
  int rank_;
  std::vector<RankFacts> facts_;
  std::vector<Place> keys_;
  std::vector<int> ring_;
  std::vector<RankPair> edges_;
  std::vector<RankPair> local_edges_;
  std::vector<int> ranks_here_;
  FifoGeometry geometry_;
  std::vector<SegmentAnswer> answers_;
  std::shared_ptr<HostSegment> segment_;
};

}  // namespace

std::vector<Wiring> wire_local_group(int size, const CommunicatorOptions& options) {
  if (size < 1) throw UsageError(fmt::format("local_group({}): a group has at least 1 rank", size));
  validate_geometry(options);
  if (options.carrier == CarrierChoice::mpi) {
    throw UsageError("local_group: ranks of one process are joined by memory, never by MPI");
  }
  const FifoGeometry geometry = choose_geometry(options, false);
  RankFacts facts = my_facts(options);
  const std::vector<RankFacts> all(static_cast<std::size_t>(size), facts);
  const std::vector<int> ring = ring_order(order_keys(all));
  const std::vector<RankPair> edges = schedule_edges(ring);
  const auto segment = std::make_shared<HostSegment>(
      map_private(HostSegment::bytes_for(edges.size(), geometry)), edges, geometry);
  std::vector<Wiring> group;
  for (int rank = 0; rank < size; ++rank) {
    Wiring wiring = empty_wiring(rank, size, geometry, ring);
    wiring.topology.places = places_of(all);
    for (std::size_t i = 0; i < edges.size(); ++i) {
      wiring.topology.edges.push_back(
          {edges[i].from, edges[i].to, Carrier::shm, "one process", i < ring.size()});
    }
    wiring.segment = segment;
    connect_segment(wiring, edges);
    wiring.crowded = crowded(static_cast<std::size_t>(size));
    group.push_back(std::move(wiring));
  }
  return group;
}

Wiring wire_processes(Bootstrap& bootstrap, const CommunicatorOptions& options,
                      const PumpFactory& make_pump) {
  validate_geometry(options);
  return ProcessWirer(bootstrap, options).wire(make_pump);
}

}  // namespace rondo::detail
