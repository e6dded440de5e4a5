// Other libraries' collectives, called as rondo's are. In a build with MPI (peers_mpi.cpp) or without
// (peers_none.cpp).
#pragma once

#include "bench/perf/measure.hpp"

namespace rondo::perf {

bool has_mpi_peer();

// MPI's own over MPI_COMM_WORLD; empty in a build without MPI. Types that MPI lacks (f16, bf16), avg, and
// counts beyond an int have no peer.
Peer mpi_peer();

}  // namespace rondo::perf
