/// \file
/// Where the ranks are, in which order the ring visits them, and how each edge is carried.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rondo/export.hpp>

namespace rondo {

/// What is known of the place a rank runs on.
struct RankPlace {
  std::string host;
  int process_id = 0;
  /// Operating system's number of the NUMA node the rank is bound to; -1 when it is bound to none
  /// or to several, or when the library was built without hwloc.
  int numa_node = -1;
};

enum class Carrier : std::uint8_t { shm, mpi };

/// A directed edge between two ranks, and why it is carried as it is.
struct Edge {
  int from = 0;
  int to = 0;
  Carrier carrier = Carrier::shm;
  std::string reason;
  /// Part of the ring; otherwise an edge to or from rank 0 that only `naive` uses.
  bool in_ring = false;
};

struct Topology {
  /// By rank.
  std::vector<RankPlace> places;
  /// Ranks in ring order; rank 0 first.
  std::vector<int> ring;
  /// Ring edges in ring order, then the others.
  std::vector<Edge> edges;
};

/// The machine as this process sees it.
struct Machine {
  std::string host;
  /// Hardware threads.
  int cores = 0;
  int numa_nodes = 0;
  std::uint64_t l2_bytes = 0;
  std::uint64_t l3_bytes = 0;
  /// Where this is known from: "hwloc API 2.8.0", say, or "no hwloc".
  std::string source;
};

RONDO_API Machine this_machine();

/// The carrier's name: "shm" or "mpi".
RONDO_API std::string name(Carrier carrier);

}  // namespace rondo
