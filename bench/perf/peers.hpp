// Other libraries' collectives, called as rondo's are. Each in a build with its library (peers_mpi.cpp,
// peers_gloo.cpp) or without (peers_no_mpi.cpp, peers_no_gloo.cpp).
#pragma once

#include "bench/perf/measure.hpp"

namespace rondo::perf {

bool has_mpi_peer();
bool has_gloo_peer();

// MPI's own over MPI_COMM_WORLD; empty in a build without MPI. Types that MPI lacks (f16, bf16), avg, and
// counts beyond an int have no peer.
Peer mpi_peer();

// Which MPI that is: "Open MPI v4.1.4", say.
std::string mpi_library();

// Gloo's all_reduce over TCP on loopback, between ranks of one host; empty in a build without Gloo.
// Collective.
Peer gloo_peer(Communicator& comm);

}  // namespace rondo::perf
