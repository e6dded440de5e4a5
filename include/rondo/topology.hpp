/// \file
/// Where the ranks are, in which order the ring visits them, and how each edge is carried.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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
  /// The rank's GPU; empty for a communicator over host memory.
  std::string device = {};
  /// Equal on ranks of one host, and made from the host's name and from what Linux draws at each
  /// start of the machine, since hosts may have equal names. Means nothing outside this run;
  /// compare by on_one_host().
  std::uint64_t host_id = 0;
};

/// Whether two ranks run on one host.
[[nodiscard]] inline bool on_one_host(const RankPlace& a, const RankPlace& b) {
  return a.host_id == b.host_id && a.host == b.host;
}

/// What carries an edge.
/// - `shm`: memory that two ranks of one host share.
/// - `mpi`: messages between hosts, by MPI.
/// - `ucx`: the same by UCX.
/// - `p2p`: between GPUs of one process, or on one GPU: device memory that both reach.
/// - `ipc`: the same between processes, by CUDA's IPC handles.
/// - `pinned`: host memory that both GPUs reach.
enum class Carrier : std::uint8_t { shm, mpi, p2p, ipc, pinned, ucx };
inline constexpr int kCarrierCount = 6;

/// A directed edge between two ranks, and why it is carried as it is.
struct Edge {
  int from = 0;
  int to = 0;
  Carrier carrier = Carrier::shm;
  std::string reason;
  /// Part of the ring. Otherwise only `naive`, `recursive_doubling`, `halving_doubling` or
  /// `hierarchical` uses it.
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
  /// Where these facts come from: "hwloc API 2.8.0", say, or "no hwloc".
  std::string source;
};

RONDO_API Machine this_machine();

RONDO_API std::string_view name(Carrier carrier);

}  // namespace rondo
