#include <algorithm>
#include <exception>
#include <limits>
#include <optional>
#include <utility>

#include "base/index.hpp"
#include "base/log.hpp"
#include "base/put.hpp"
#include "bootstrap/share_memory.hpp"
#include "bootstrap/together.hpp"
#include "carrier/life_sign.hpp"
#include "engine/stage_places.hpp"
#include "joining/connect.hpp"
#include "joining/edges.hpp"
#include "joining/fifo_sizes.hpp"
#include "joining/rank_facts.hpp"
#include "joining/share_arenas.hpp"
#include "joining/wire.hpp"
#include "memory/shared_memory.hpp"
#include "net/messenger.hpp"
#include "schedule/slicing.hpp"

namespace rondo::detail {
namespace {

// Makes the wiring of one process, step by step. All ranks make every step that exchanges data, and
// if one rank fails in a step, all ranks throw.
class JoiningProcess {
 public:
  JoiningProcess(Bootstrap& bootstrap, const CommunicatorOptions& options,
                 const NetworkCarrier& network)
      : bootstrap_(bootstrap), options_(options), network_(network), rank_(bootstrap.rank()) {}

  Wiring wire(const std::string& refusal) {
    gather_facts(refusal);
    choose_fifos();
    share_segment();
    // Before peers are watched, which takes as many descriptors as there are.
    Reach reach = share_arenas(bootstrap_, ranks_sharing(hosts_, shared_, rank_));
    Wiring wiring = empty_wiring(rank_, bootstrap_.size(), ring_);
    wiring.topology.places = places_of(facts_);
    wiring.links.network = network_.carrier;
    wiring.links.session = facts_[0].session;
    wiring.links.reach = std::move(reach);
    wiring.waiting.drive_program = network_.drive_program;
    wiring.waiting.hosts = network_.hosts;
    wiring.waiting.watched_as = network_.watched_as;
    const CarrierFacts carriers{options_.carrier, network_.carrier, &hosts_,
                                &wiring.topology.places, &shared_};
    wiring.topology.edges = settle_edges(edges_, carriers, rank_);
    const auto by_network = [&](const Edge& edge) { return edge.carrier == network_.carrier; };
    if (std::any_of(wiring.topology.edges.begin(), wiring.topology.edges.end(), by_network)) {
      open_network();
    }
    std::optional<PumpEdges> carried;
    together(bootstrap_, [&] {
      connect(wiring);
      carried = make_edges_for_pump(wiring);
    });
    // A step of its own, since make_pump may be collective: no rank comes here that has failed
    // before.
    together(bootstrap_, [&] {
      if (carried) wiring.links.pump = network_.make_pump(std::move(*carried));
    });
    if (wiring.links.pump != nullptr) open_connections(*wiring.links.pump);
    return wiring;
  }

 private:
  // What the ranks have met that cannot reach each other is the error of all, if there are such.
  void open_connections(Pump& pump) {
    std::exception_ptr of_others;
    together(bootstrap_, [&] {
      try {
        pump.open_connections();
      } catch (const OthersNotConnected&) {
        of_others = std::current_exception();
      }
    });
    together(bootstrap_, [&] {
      if (of_others) std::rethrow_exception(of_others);
    });
  }

  void gather_facts(const std::string& refusal) {
    RankFacts mine = my_facts(options_);
    if (!refusal.empty()) put(mine.refusal, refusal);
    mine.life = life_sign_of_this_process();
    facts_ = bootstrap_.exchange(mine);
    require_all_can_join(facts_);
    ring_ = options_.rank_order ? rank_order(facts_.size()) : ring_order(order_keys(facts_));
    hosts_ = hosts_of(facts_);
    recursive_doubling_ = bootstrap_.size() > 1 && (!shares_memory() || !hosts_.all_on_one());
    AlgorithmSet algorithms = {Algorithm::ring, Algorithm::naive};
    // If all ranks share memory, one_shot is faster.
    if (recursive_doubling_) {
      algorithms.add(Algorithm::recursive_doubling);
      algorithms.add(Algorithm::halving_doubling);
    }
    edges_ = schedule_edges(ring_, algorithms);
    set_rails();
  }

  // Sets the rails, and adds the edges along them. If each rank has a host for itself, or the ranks
  // of a host share no memory, the only rail is the ring.
  void set_rails() {
    rails_ = {ring_};
    if (!shares_memory()) return;
    RanksByHost by_host;
    for (int rank = 0; rank < bootstrap_.size(); ++rank) {
      if (hosts_.lowest_rank_with(rank) == rank) by_host.push_back(hosts_.ranks_with(rank));
    }
    if (by_host.size() == static_cast<std::size_t>(bootstrap_.size())) return;
    rails_ = rails_of(by_host);
    if (by_host.size() > 1) add_rail_edges(edges_, rails_);
  }

  // FIFO sizes are the same on all ranks: for the slowest link between hosts, if there is one, and
  // the smallest cache.
  void choose_fifos() {
    std::uint64_t cache_bytes = std::numeric_limits<std::uint64_t>::max();
    LocalEdges most;
    for (int rank = 0; rank < bootstrap_.size(); ++rank) {
      if (hosts_.lowest_rank_with(rank) != rank) continue;
      cache_bytes = std::min(cache_bytes, cache_share_bytes(facts_of_host(rank)));
      LocalEdges local;
      for (const ScheduleEdge& edge : edges_of_host(rank)) local.count(edge);
      most = {std::max(most.ring, local.ring), std::max(most.off_ring, local.off_ring),
              std::max<std::uint64_t>(most.ranks, hosts_.ranks_with(rank).size())};
    }
    // Without a probe there is no carrier for links between hosts either; settle_edges() reports
    // that.
    if (recursive_doubling_ && network_.probe) {
      open_network();
      slowest_link_ = measure_slowest_link();
    }
    geometries_ = choose_geometries(options_, cache_bytes, slowest_link_, most);
  }

  std::optional<LinkFacts> measure_slowest_link() {
    const std::size_t size = ring_.size();
    const std::size_t mine = positions_of(ring_)[Index(rank_)];
    const auto across = [&](std::size_t position) {
      const int rank = ring_[position % size];
      const bool memory = shares_memory() && hosts_.same(rank, rank_);
      return rank == rank_ || memory ? kNoLink : rank;
    };
    const int next = across(mine + 1);
    const int prev = across(mine + size - 1);
    if (network_.greet) together(bootstrap_, [&] { network_.greet(next, prev); });
    LinkFacts facts;
    together(bootstrap_, [&] { facts = network_.probe(next, prev); });
    std::optional<LinkFacts> slowest;
    for (const LinkFacts& one : bootstrap_.exchange(facts)) {
      if (one.bytes_per_us <= 0) continue;  // that rank shares memory with the next one
      if (!slowest) slowest = one;
      slowest->latency_us = std::max(slowest->latency_us, one.latency_us);
      slowest->bytes_per_us = std::min(slowest->bytes_per_us, one.bytes_per_us);
    }
    if (!slowest) return slowest;
    log(LogLevel::info, "rank {}: the slowest link carries {:.0f} bytes a us, in {:.0f} us", rank_,
        slowest->bytes_per_us, slowest->latency_us);
    return slowest;
  }

  [[nodiscard]] std::vector<ScheduleEdge> edges_of_host(int of) const {
    std::vector<ScheduleEdge> edges;
    for (const ScheduleEdge& edge : edges_) {
      if (hosts_.same(edge.ranks.from, of) && hosts_.same(edge.ranks.to, of)) edges.push_back(edge);
    }
    return edges;
  }
  [[nodiscard]] std::vector<RankFacts> facts_of_host(int of) const {
    std::vector<RankFacts> facts;
    for (const int rank : hosts_.ranks_with(of)) {
      facts.push_back(facts_[Index(rank)]);
    }
    return facts;
  }

  // Whether ranks of one host may share memory.
  [[nodiscard]] bool shares_memory() const {
    return options_.carrier != CarrierChoice::mpi && options_.carrier != CarrierChoice::ucx;
  }

  void open_network() {
    if (network_.open && !std::exchange(is_open_, true)) network_.open(bootstrap_);
  }

  // One segment a host, made by its lowest rank and handed to the others. A host that shares
  // nothing has an abort board in each process.
  void share_segment() {
    const bool wanted = shares_memory() && hosts_.ranks_with(rank_).size() > 1;
    segment_edges_ = with_geometry(edges_of_host(rank_), geometries_.memory);
    SegmentPlan plan{bootstrap_.size(),
                     hosts_.all_on_one() ? one_shot_limit_bytes(bootstrap_.size()) : 0,
                     segment_edges_,
                     static_cast<int>(hosts_.ranks_with(rank_).size()),
                     stage_bytes_for(hosts_.ranks_with(rank_).size()),
                     geometries_.pairwise,
                     static_cast<int>(hosts_.ranks_with(rank_).size())};
    shared_ = share_memory(bootstrap_, hosts_.lowest_rank_with(rank_), wanted, plan.bytes(),
                           plan.reserved_bytes());
    SharedObject object = std::move(shared_.object);  // its file is not needed any more
    if (object.mapping.data() == nullptr) {
      segment_edges_.clear();
      plan = {bootstrap_.size(), 0, {}, 1, stage_bytes_for(1)};
      object.mapping = map_private(plan.bytes());
    }
    segment_ = std::make_shared<HostSegment>(std::move(object.mapping), plan);
  }

  void connect(Wiring& wiring) const {
    wiring.links.segment = segment_;
    wiring.links.slowest_link = slowest_link_;
    wiring.links.ranks_sharing = ranks_sharing(hosts_, shared_, rank_);
    note_smallest_fifos(wiring);
    connect_segment(wiring, segment_edges_);
    const std::vector<int>& sharing = wiring.links.ranks_sharing;
    const auto index = std::find(sharing.begin(), sharing.end(), rank_) - sharing.begin();
    if (sharing.size() > 1) {  // else nobody reads the stage
      wiring.links.used_parts.push_back(
          {{Algorithm::hierarchical}, segment_->stage_of(static_cast<int>(index))});
    }
    watch_peers(wiring, facts_);
    wiring.waiting.crowded = crowded(facts_of_host(rank_));
    wiring.links.share_cores = share_cores(facts_);
    wiring.waiting.short_of_quota = short_of_quota(facts_of_host(rank_));
    if (slowest_link_) wiring.waiting.naps = naps_for(*slowest_link_, geometries_.link.ring);
    wiring.offers.largest_element_bytes = largest_element_bytes(wiring);
    wiring.offers.rank_order = options_.rank_order;
    wiring.offers.non_temporal_bytes = non_temporal_bytes(facts_[Index(rank_)]);
    offer_algorithms(wiring);
  }

  // The same on all ranks, so whatever stages there are, it fits those of a host with all ranks.
  [[nodiscard]] std::uint64_t largest_element_bytes(const Wiring& wiring) const {
    const auto ranks = static_cast<std::size_t>(bootstrap_.size());
    const std::uint64_t area =
        stage_bytes_for(ranks) / kStageParts / ranks / kChunkGranuleBytes * kChunkGranuleBytes;
    const std::uint64_t slot =
        std::min({wiring.links.ring_geometry.slot_bytes, wiring.links.off_ring_geometry.slot_bytes,
                  geometries_.link.ring.slot_bytes,
                  geometries_.pairwise[Index(PairwiseUse::trees)].slot_bytes});
    return area == 0 ? slot : std::min(slot, area);
  }

  void offer_algorithms(Wiring& wiring) const {
    const auto offer = [&](Algorithm algorithm, std::uint64_t most_bytes) {
      wiring.offers.of(algorithm).most_bytes = most_bytes;
    };
    if (recursive_doubling_) {
      offer(Algorithm::recursive_doubling, kAnySize);
      offer(Algorithm::halving_doubling, kAnySize);
    }
    if (std::is_sorted(ring_.begin(), ring_.end())) offer(Algorithm::chain, kAnySize);
    // Only where every rank can read every outbox and every presence.
    if (static_cast<int>(wiring.links.ranks_sharing.size()) == bootstrap_.size()) {
      offer(Algorithm::one_shot, segment_->one_shot_bytes());
      offer(Algorithm::direct, kAnySize);
    }
    offer_hierarchical(wiring);
  }

  void offer_hierarchical(Wiring& wiring) const {
    wiring.links.rails = static_cast<int>(rails_.size());
    wiring.links.rail_geometry = geometries_.link.ring;
    for (const std::vector<int>& rail : rails_) {
      if (std::find(rail.begin(), rail.end(), rank_) != rail.end()) wiring.links.rail = rail;
    }
    wiring.links.hosts = static_cast<int>(rails_[0].size());
    for (int host = 0; host < wiring.links.hosts; ++host) {
      if (hosts_.same(rails_[0][Index(host)], rank_)) wiring.links.host = host;
    }
    const bool some_host_has_several = rails_.size() > 1 || rails_[0].size() < ring_.size();
    bool all_have_stages = true;
    for (int rank = 0; rank < bootstrap_.size(); ++rank) {
      const std::size_t on_host = hosts_.ranks_with(rank).size();
      const bool reached = on_host == 1 || shared_.mapped[Index(rank)];
      all_have_stages &= reached && stage_bytes_for(on_host) > 0;
    }
    if (shares_memory() && some_host_has_several && all_have_stages) {
      wiring.offers.of(Algorithm::hierarchical).most_bytes = kAnySize;
    }
  }

  // The FIFO sizes that a schedule can count on at every edge.
  void note_smallest_fifos(Wiring& wiring) const {
    set_pairwise_geometries(wiring, geometries_.pairwise);
    wiring.links.ring_geometry = geometries_.link.ring;
    wiring.links.off_ring_geometry = geometries_.link.off_ring;
    for (const Edge& edge : wiring.topology.edges) {
      wiring.offers.leaves_memory |= edge.in_ring && edge.carrier != Carrier::shm;
      if (edge.carrier != Carrier::shm) continue;
      (edge.in_ring ? wiring.links.ring_geometry : wiring.links.off_ring_geometry) =
          geometries_.memory.of(edge.in_ring);
    }
  }

  // Makes the FIFOs of this rank's edges to other hosts, and returns their ends for the pump;
  // nothing if no rank needs a pump.
  [[nodiscard]] std::optional<PumpEdges> make_edges_for_pump(Wiring& wiring) const {
    PumpEdges carried;
    bool any = false;
    for (std::size_t index = 0; index < edges_.size(); ++index) {
      const Edge& edge = wiring.topology.edges[index];
      any |= edge.carrier == network_.carrier;
      if (edge.carrier != network_.carrier || (edge.from != rank_ && edge.to != rank_)) continue;
      connect_to_pump(wiring, carried, edge, edges_[index],
                      geometries_.link.of(edges_[index].bulk));
    }
    // A rank that has no such edge itself still needs the pump, to receive and announce aborts.
    if (!any) return std::nullopt;
    carried.ranks_elsewhere = ranks_elsewhere(bootstrap_.size(), wiring.links.ranks_sharing);
    carried.board = &wiring.links.segment->board();
    carried.session = facts_[0].session;
    return carried;
  }

  Bootstrap& bootstrap_;
  const CommunicatorOptions& options_;
  const NetworkCarrier& network_;
  bool is_open_ = false;
  int rank_;
  std::vector<RankFacts> facts_;
  Hosts hosts_;
  std::vector<int> ring_;
  std::vector<ScheduleEdge> edges_;
  std::vector<std::vector<int>> rails_;
  Geometries geometries_;
  bool recursive_doubling_ = false;  // there are edges for it
  std::optional<LinkFacts> slowest_link_;
  std::vector<SegmentEdge> segment_edges_;
  SharedMemory shared_;  // its object has been moved to the segment
  std::shared_ptr<HostSegment> segment_;
};

}  // namespace

Wiring wire_processes(Bootstrap& bootstrap, const CommunicatorOptions& options,
                      const std::string& refusal, const NetworkCarrier& network) {
  return JoiningProcess(bootstrap, options, network).wire(refusal);
}

}  // namespace rondo::detail
