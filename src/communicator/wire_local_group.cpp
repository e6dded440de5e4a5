#include <numeric>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "carrier/memory.hpp"
#include "communicator/wiring.hpp"
#include "communicator/wiring_parts.hpp"

namespace rondo::detail {

std::vector<Wiring> wire_local_group(int size, const CommunicatorOptions& options) {
  if (size < 1) throw UsageError(fmt::format("local_group({}): a group has at least 1 rank", size));
  validate_geometry(options);
  if (options.carrier == CarrierChoice::mpi) {
    throw UsageError("local_group: ranks of one process are joined by memory, never by MPI");
  }
  const std::vector<RankFacts> all(static_cast<std::size_t>(size), my_facts(options));
  const std::vector<int> ring = ring_order(order_keys(all));
  const std::vector<ScheduleEdge> edges = schedule_edges(ring, {Algorithm::ring, Algorithm::naive});
  LocalEdges local;
  for (const ScheduleEdge& edge : edges) local.count(edge);
  const EdgeGeometries geometries =
      choose_geometries(options, cache_share_bytes(all), std::nullopt, local).memory;
  const std::vector<SegmentEdge> carried = with_geometry(edges, geometries);
  const SegmentPlan plan{size, one_shot_limit_bytes(size), carried};
  const auto segment = std::make_shared<HostSegment>(map_private(plan.bytes()), plan);
  std::vector<int> everyone(static_cast<std::size_t>(size));
  std::iota(everyone.begin(), everyone.end(), 0);
  std::vector<Wiring> group;
  for (int rank = 0; rank < size; ++rank) {
    Wiring wiring = empty_wiring(rank, size, ring);
    wiring.ring_geometry = geometries.ring;
    wiring.star_geometry = geometries.star;
    wiring.topology.places = places_of(all);
    for (const ScheduleEdge& edge : edges) {
      wiring.topology.edges.push_back(
          {edge.ranks.from, edge.ranks.to, Carrier::shm, "one process", edge.in_ring()});
    }
    wiring.segment = segment;
    wiring.ranks_sharing = everyone;
    wiring.one_shot_bytes = segment->one_shot_bytes();
    connect_segment(wiring, carried);
    wiring.streaming_bytes = streaming_bytes(all[0]);
    wiring.crowded = crowded(all);
    group.push_back(std::move(wiring));
  }
  return group;
}

}  // namespace rondo::detail
