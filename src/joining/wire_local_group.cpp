#include <numeric>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "joining/connect.hpp"
#include "joining/fifo_sizes.hpp"
#include "joining/handover.hpp"
#include "joining/rank_facts.hpp"
#include "joining/wire.hpp"
#include "memory/shared_memory.hpp"

namespace rondo::detail {

std::vector<Wiring> wire_local_group(int size, const CommunicatorOptions& options) {
  if (size < 1) throw UsageError(fmt::format("local_group({}): a group has at least 1 rank", size));
  validate_geometry(options);
  if (options.carrier == CarrierChoice::mpi || options.carrier == CarrierChoice::ucx) {
    throw UsageError("local_group: ranks of one process are joined by memory, never by MPI or UCX");
  }
  const std::vector<RankFacts> all(static_cast<std::size_t>(size), my_facts(options));
  const std::vector<int> ring = ring_order(order_keys(all));
  const std::vector<ScheduleEdge> edges = schedule_edges(ring, {Algorithm::ring, Algorithm::naive});
  LocalEdges local;
  for (const ScheduleEdge& edge : edges) local.count(edge);
  local.ranks = static_cast<std::uint64_t>(size);
  const Geometries chosen = choose_geometries(options, cache_share_bytes(all), std::nullopt, local);
  const EdgeGeometries& geometries = chosen.memory;
  const std::vector<SegmentEdge> carried = with_geometry(edges, geometries);
  const SegmentPlan plan{size, one_shot_limit_bytes(size), carried, 0, 0, chosen.pairwise, size};
  const auto segment = std::make_shared<HostSegment>(map_private(plan.bytes()), plan);
  std::vector<int> everyone(static_cast<std::size_t>(size));
  std::iota(everyone.begin(), everyone.end(), 0);
  const auto handover = std::make_shared<Handover>();
  std::vector<Wiring> group;
  for (int rank = 0; rank < size; ++rank) {
    Wiring wiring = empty_wiring(rank, size, ring);
    wiring.topology.places = places_of(all);
    for (const ScheduleEdge& edge : edges) {
      wiring.topology.edges.push_back(
          {edge.ranks.from, edge.ranks.to, Carrier::shm, "one process", edge.in_ring()});
    }
    set_pairwise_geometries(wiring, chosen.pairwise);
    wiring.links.ring_geometry = geometries.ring;
    wiring.links.off_ring_geometry = geometries.off_ring;
    wiring.links.segment = segment;
    wiring.links.reach = Reach::in_one_process();
    wiring.links.handover = handover;
    wiring.links.ranks_sharing = everyone;
    connect_segment(wiring, carried);
    wiring.waiting.crowded = crowded(all);
    wiring.waiting.short_of_quota = short_of_quota(all);
    wiring.offers.of(Algorithm::direct).most_bytes = kAnySize;
    // Ranks of one process are in rank order.
    wiring.offers.of(Algorithm::chain).most_bytes = kAnySize;
    wiring.offers.of(Algorithm::one_shot).most_bytes = segment->one_shot_bytes();
    wiring.offers.largest_element_bytes =
        std::min({geometries.ring.slot_bytes, geometries.off_ring.slot_bytes,
                  chosen.pairwise[Index(PairwiseUse::trees)].slot_bytes});
    wiring.offers.rank_order = options.rank_order;
    wiring.offers.non_temporal_bytes = non_temporal_bytes(all[0]);
    group.push_back(std::move(wiring));
  }
  return group;
}

}  // namespace rondo::detail
