// In which order the ring visits the ranks, and which edges the algorithms use.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/algorithm_set.hpp"
#include "base/rank_pair.hpp"

namespace rondo::detail {

// Where a rank is, as far as the order of the ring depends on it.
struct OrderKey {
  std::string host;    // equal for ranks that may share memory
  int numa_node = -1;  // -1: not bound to one
};

// Ranks of one host are neighbours, and within a host those of one NUMA node, so that the ring
// enters and leaves each once. Hosts and nodes are in the order of their lowest rank, and the ranks
// of a node in rank order: rank 0 is first. The order depends on these keys alone.
std::vector<int> ring_order(const std::vector<OrderKey>& ranks);
// Rank 0 first, then 1, wherever they are.
std::vector<int> rank_order(std::size_t size);

// The ranks of each host, hosts in the order of their lowest rank, ranks in order.
using RanksByHost = std::vector<std::vector<int>>;
// Rails: rings between hosts, rail i with the i-th rank of each host; as many as the smallest host
// has ranks. Each has its ranks in the order of hosts.
std::vector<std::vector<int>> rails_of(const RanksByHost& hosts);

struct ScheduleEdge {
  RankPair ranks;
  AlgorithmSet algorithms;          // that use it
  bool bulk = false;                // long vectors go round it, in the ring or in a rail
  AlgorithmSet between_hosts = {};  // by which `hierarchical` goes along it

  [[nodiscard]] bool in_ring() const { return algorithms.has(Algorithm::ring); }

  friend bool operator==(const ScheduleEdge&, const ScheduleEdge&) = default;
};

// Every edge that a schedule by one of `algorithms` may use: the ring's edges in ring order, then
// the off-ring edges.
std::vector<ScheduleEdge> schedule_edges(const std::vector<int>& ring, AlgorithmSet algorithms);

// Adds the edges along all rails, by which `hierarchical` goes between hosts: of the rings, and of
// halving_doubling; on the first rail, that of the leaders, also those for few bytes.
void add_rail_edges(std::vector<ScheduleEdge>& edges, const std::vector<std::vector<int>>& rails);

}  // namespace rondo::detail
