#include "topology/ring_order.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/index.hpp"
#include "schedule/schedule.hpp"

namespace rondo::detail {

std::vector<int> ring_order(const std::vector<OrderKey>& ranks) {
  std::map<std::string, int> host_leader;
  std::map<std::pair<std::string, int>, int> node_leader;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const int rank = static_cast<int>(i);
    host_leader.try_emplace(ranks[i].host, rank);
    node_leader.try_emplace({ranks[i].host, ranks[i].numa_node}, rank);
  }
  const auto key = [&](int rank) {
    const OrderKey& place = ranks[Index(rank)];
    return std::tuple(host_leader.at(place.host), node_leader.at({place.host, place.numa_node}),
                      rank);
  };
  std::vector<int> ring = rank_order(ranks.size());
  std::sort(ring.begin(), ring.end(), [&](int a, int b) { return key(a) < key(b); });
  return ring;
}

std::vector<int> rank_order(std::size_t size) {
  std::vector<int> ring(size);
  std::iota(ring.begin(), ring.end(), 0);
  return ring;
}

std::vector<std::vector<int>> rails_of(const RanksByHost& hosts) {
  std::size_t count = hosts[0].size();
  for (const std::vector<int>& ranks : hosts) count = std::min(count, ranks.size());
  std::vector<std::vector<int>> rails(count);
  for (std::size_t rail = 0; rail < count; ++rail) {
    for (const std::vector<int>& ranks : hosts) rails[rail].push_back(ranks[rail]);
  }
  return rails;
}

namespace {

ScheduleEdge& edge_between(std::vector<ScheduleEdge>& edges, const RankPair& ranks) {
  const auto known = std::find_if(edges.begin(), edges.end(),
                                  [&](const auto& edge) { return edge.ranks == ranks; });
  return known == edges.end() ? edges.emplace_back(ScheduleEdge{ranks, {}}) : *known;
}

}  // namespace

std::vector<ScheduleEdge> schedule_edges(const std::vector<int>& ring, AlgorithmSet algorithms) {
  std::vector<ScheduleEdge> edges;
  const int size = static_cast<int>(ring.size());
  // The edges of all_reduce are all that any collective by the same algorithm uses.
  for (int which = 0; which < kAlgorithmCount; ++which) {
    const auto algorithm = static_cast<Algorithm>(which);
    if (!algorithms.has(algorithm)) continue;
    for (int position = 0; position < size; ++position) {
      const Schedule schedule{Collective::all_reduce, algorithm, position, size, 0};
      for (int index = 0; index < schedule.steps(); ++index) {
        const Step step = schedule.step(index);
        if (!step.has(kSend)) continue;
        ScheduleEdge& edge = edge_between(edges, {ring[Index(position)], ring[Index(step.to)]});
        edge.algorithms.add(algorithm);
        edge.bulk |= algorithm == Algorithm::ring;
      }
    }
  }
  return edges;
}

void add_rail_edges(std::vector<ScheduleEdge>& edges, const std::vector<std::vector<int>>& rails) {
  for (std::size_t rail = 0; rail < rails.size(); ++rail) {
    AlgorithmSet algorithms = {Algorithm::ring, Algorithm::halving_doubling};
    if (rail == 0) {
      algorithms.add(Algorithm::naive);
      algorithms.add(Algorithm::recursive_doubling);
    }
    for (const ScheduleEdge& along : schedule_edges(rails[rail], algorithms)) {
      ScheduleEdge& edge = edge_between(edges, along.ranks);
      edge.algorithms.add(Algorithm::hierarchical);
      edge.bulk |= along.bulk;
      edge.between_hosts = along.algorithms;
    }
  }
}

}  // namespace rondo::detail
