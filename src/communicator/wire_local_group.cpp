#include <fmt/format.h>

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

}  // namespace rondo::detail
