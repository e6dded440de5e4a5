#include "topology/ring_order.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace rondo::detail {

std::vector<int> ring_order(const std::vector<Place>& places) {
  std::map<std::string, int> host_leader;
  std::map<std::pair<std::string, int>, int> node_leader;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const int rank = static_cast<int>(i);
    host_leader.try_emplace(places[i].host, rank);
    node_leader.try_emplace({places[i].host, places[i].numa_node}, rank);
  }
  const auto key = [&](int rank) {
    const Place& place = places[static_cast<std::size_t>(rank)];
    return std::tuple(host_leader.at(place.host), node_leader.at({place.host, place.numa_node}),
                      rank);
  };
  std::vector<int> ring(places.size());
  std::iota(ring.begin(), ring.end(), 0);
  std::sort(ring.begin(), ring.end(), [&](int a, int b) { return key(a) < key(b); });
  return ring;
}

std::vector<ScheduleEdge> schedule_edges(const std::vector<int>& ring) {
  std::vector<ScheduleEdge> edges;
  const auto add = [&](const RankPair& ranks, bool in_ring) {
    const bool known = std::any_of(edges.begin(), edges.end(),
                                   [&](const ScheduleEdge& edge) { return edge.ranks == ranks; });
    if (ranks.from != ranks.to && !known) edges.push_back({ranks, in_ring});
  };
  for (std::size_t i = 0; i < ring.size(); ++i) add({ring[i], ring[(i + 1) % ring.size()]}, true);
  for (const int rank : ring) {
    add({rank, ring.front()}, false);
    add({ring.front(), rank}, false);
  }
  return edges;
}

}  // namespace rondo::detail
