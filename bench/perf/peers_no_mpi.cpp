#include "bench/perf/peers.hpp"

namespace rondo::perf {

bool has_mpi_peer() { return false; }
Peer mpi_peer() { return {}; }
std::string mpi_library() { return "none"; }

}  // namespace rondo::perf
