#include "cuda/joining/wire_devices.hpp"

#include <algorithm>
#include <optional>

#include "base/index.hpp"
#include "bootstrap/share_memory.hpp"
#include "bootstrap/together.hpp"
#include "communicator/communicator_bootstrap.hpp"
#include "cuda/joining/device_edges.hpp"
#include "cuda/joining/device_facts.hpp"
#include "cuda/joining/reach.hpp"
#include "cuda/joining/shown_memory.hpp"
#include "cuda/joining/upload.hpp"
#include "cuda/kernels/launch.hpp"
#include "joining/connect.hpp"
#include "joining/edges.hpp"
#include "plan/call_signature.hpp"

namespace rondo::detail::gpu {
namespace {

// Wires one rank's device, step by step. All ranks take every step that exchanges data; if such a
// step fails on one rank, all ranks throw.
class JoiningDevice {
 public:
  JoiningDevice(rondo::Communicator& host, Wiring& wiring, const cuda::Options& options)
      : host_(wiring),
        bootstrap_(host, PartOf::cuda_join),
        options_(options),
        rank_(host.rank()),
        size_(host.size()) {}

  DeviceWiring wire() {
    wiring_.rank = rank_;
    wiring_.view.message_number = device_message_number(host_.links.session);
    gather_facts();
    order_ring();
    take_memory();
    const Reach reach = reach_others(bootstrap_, *group_, options_.peer_access, layouts_, wiring_);
    const std::string one_shot_lost = settle_ways(reach);
    share_control();
    refuse_fallbacks(edges_, settled_, one_shot_lost, *group_, options_.peer_access, rank_);
    PumpEdges pumped;
    together(bootstrap_, [&] {
      const DeviceScope scope(wiring_.device);
      pumped = upload_ends(wiring_, edges_, settled_, layouts_, reach);
      if (any_by_mpi()) require_pump();
    });
    // Any failure until here has been thrown by all ranks, so that no rank waits alone in the
    // collective MPI calls below.
    if (any_by_mpi()) together(bootstrap_, [&] { make_pump(std::move(pumped)); });
    show_edges();
    return std::move(wiring_);
  }

 private:
  [[nodiscard]] int index_on_host() const {
    const std::vector<RankPlace>& places = host_.topology.places;
    const auto end = places.begin() + rank_;
    return static_cast<int>(std::count_if(
        places.begin(), end, [&](const RankPlace& p) { return on_one_host(p, *end); }));
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
    wiring_.geometry = group_->choose_geometry();
    group_->warn_of_lazy_loading(rank_);
    wiring_.threads = group_->of(0).threads;
    wiring_.topology.places = group_->places();
  }

  void order_ring() {
    std::vector<DeviceLink> mine;
    together(bootstrap_, [&] { mine = links_of(*group_, rank_); });
    links_ = bootstrap_.exchange_rows(mine);
    wiring_.topology.ring = device_ring(group_->hosts().names(), links_);
    edges_ = edges_between_devices(wiring_.topology.ring);
    layouts_.resize(static_cast<std::size_t>(size_));
    for (const int rank : group_->hosts().ranks_with(rank_)) {
      layouts_[Index(rank)] = layout_of(rank, edges_, wiring_.geometry);
    }
  }

  // Allocates what this rank needs on its device.
  void take_memory() {
    together(bootstrap_, [this] {
      wiring_.handles.emplace(wiring_.device);
      const std::size_t bytes = layouts_[Index(rank_)].bytes;
      wiring_.exposed = allocate_to_show(wiring_.device, bytes);
      const DeviceScope scope(wiring_.device);
      kernels::load_all();
    });
  }

  // Returns why one_shot and direct are lost, if not all ranks reach each other; else an empty
  // text.
  std::string settle_ways(const Reach& reach) {
    bool one_device = true;
    settled_ = device_edges(*group_, edges_, links_, reach);
    for (int rank = 0; rank < size_; ++rank) {
      wiring_.in_this_process.push_back(group_->same_process(rank, rank_));
      one_device = one_device && group_->same_process(rank, 0) && group_->same_device(rank, 0);
    }
    wiring_.one_device = one_device;
    std::string objection = objection_to_reach(reach);
    offer_algorithms(objection.empty(), reach);
    return wiring_.geometry.inbox_units == 0 ? std::string() : objection;
  }

  void offer_algorithms(bool all_reached, const Reach& reach) {
    wiring_.offers = basic_offers(size_);
    wiring_.offers.on_devices = true;
    wiring_.offers.rank_order = host_.offers.rank_order;
    if (!all_reached) {
      withdraw_offers();
      return;
    }
    wiring_.offers.of(Algorithm::direct) = {kAnySize};
    if (reach.lacks_atomics()) {
      wiring_.offers.of(Algorithm::direct) = {
          0,
          "direct cannot be used, since some devices are joined by PCIe, which carries no atomic "
          "operations between them; choose ring"};
    }
    const bool has_inboxes = wiring_.geometry.inbox_units > 0;
    wiring_.offers.of(Algorithm::one_shot) = {
        has_inboxes ? group_->one_shot_bytes() : 0,
        "one_shot cannot be used: cuda::Options::one_shot_bytes is 0, or there is one rank, or "
        "there are too many; choose ring"};
  }

  // Not every rank reaches the memory of every other, or not all share the control segment.
  void withdraw_offers() {
    wiring_.offers.of(Algorithm::direct) = {0,
                                            "direct cannot be used, since not every rank reaches "
                                            "the memory of every other; choose ring"};
    wiring_.offers.of(Algorithm::one_shot) = {0,
                                              "one_shot cannot be used, since not every rank "
                                              "reaches the memory of every other; choose ring"};
  }

  // Makes one segment for each host, as for host memory. Edges between ranks of a host that cannot
  // share it use MPI.
  void share_control() {
    const Hosts& hosts = group_->hosts();
    std::vector<PinnedFifo> fifos;
    for (std::size_t i = 0; i < edges_.size(); ++i) {
      const Edge& edge = settled_[i];
      if (edge.carrier == Carrier::pinned && hosts.same(edge.from, rank_)) {
        fifos.push_back({static_cast<int>(i), geometry().fifo_of(edges_[i]),
                         geometry().channels_of(edges_[i])});
      }
    }
    const std::size_t bytes = ControlSegment::bytes_for(size_, geometry().blocks(), fifos);
    SharedMemory shared = share_memory(bootstrap_, hosts.lowest_rank_with(rank_),
                                       hosts.ranks_with(rank_).size() > 1, bytes, bytes);
    if (fall_back_to_mpi(settled_, shared)) withdraw_offers();
    wiring_.ranks_sharing = ranks_sharing(hosts, shared, rank_);
    together(bootstrap_, [&] {
      if (shared.object.mapping.data() == nullptr) {
        fifos.clear();
        shared.object.mapping =
            map_private(ControlSegment::bytes_for(size_, geometry().blocks(), {}));
      }
      wiring_.control =
          ControlSegment(PinnedMapping(wiring_.device, std::move(shared.object.mapping)), size_,
                         geometry().blocks(), std::move(fifos));
    });
  }

  // The topology has the edges of `ring` and `naive` alone, as that of hosts.
  void show_edges() {
    for (std::size_t i = 0; i < edges_.size(); ++i) {
      Edge& edge = settled_[i];
      wiring_.shared_by_ipc |= edge.carrier == Carrier::ipc;
      // Until here `mpi` stands for whatever the host communicator's pump sends by.
      if (edge.carrier == Carrier::mpi) edge.carrier = host_.links.network;
      if (!is_pairwise(edges_[i])) wiring_.topology.edges.push_back(std::move(edge));
    }
  }

  [[nodiscard]] bool any_by_mpi() const {
    return std::any_of(settled_.begin(), settled_.end(),
                       [](const Edge& edge) { return edge.carrier == Carrier::mpi; });
  }

  void require_pump() const {
    if (host_.links.pump == nullptr) {
      throw TransportError(
          "some ranks share no memory, and the host communicator has no network between hosts; "
          "make "
          "it with from_mpi or from_store");
    }
    const std::string objection = host_.links.pump->objection_to_progress_thread();
    if (!objection.empty()) throw UsageError(objection);
  }

  // Collective.
  void make_pump(PumpEdges pumped) {
    pumped.ranks_elsewhere = ranks_elsewhere(size_, wiring_.ranks_sharing);
    pumped.board = &host_.links.segment->board();
    wiring_.pump = host_.links.pump->another(std::move(pumped));
    // A rank that leaves says so along these connections: else its end would be an error of those
    // that go on.
    wiring_.pump->open_connections();
    wiring_.pump->drive_all();  // since the host does not show it which calls run
  }

  [[nodiscard]] const DeviceGeometry& geometry() const { return wiring_.geometry; }

  Wiring& host_;
  CommunicatorBootstrap bootstrap_;
  const cuda::Options& options_;
  int rank_;
  int size_;
  std::optional<GroupFacts> group_;
  std::vector<std::vector<DeviceLink>> links_;
  std::vector<ScheduleEdge> edges_;
  std::vector<Edge> settled_;           // their carriers
  std::vector<ExposedLayout> layouts_;  // by rank, of the ranks of this host
  DeviceWiring wiring_;
};

}  // namespace

DeviceWiring wire_devices(rondo::Communicator& host, Wiring& wiring, const cuda::Options& options) {
  return JoiningDevice(host, wiring, options).wire();
}

}  // namespace rondo::detail::gpu
