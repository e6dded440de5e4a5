// Collectives of other libraries, called like Rondo's. peers_mpi.cpp and peers_gloo.cpp need their
// libraries; builds without them use peers_no_mpi.cpp and peers_no_gloo.cpp.
#pragma once

#include "bench/perf/measure.hpp"

namespace rondo::perf {

bool has_mpi_peer();
bool has_gloo_peer();

// MPI's collectives over MPI_COMM_WORLD; empty in a build without MPI. The peer cannot make calls
// with types that MPI lacks (f16, bf16), with avg, or with counts beyond an int.
Peer mpi_peer();

// Name and version of the MPI library, such as "Open MPI v4.1.4".
std::string mpi_library();

// Gloo's all_reduce over TCP on loopback, between ranks of one host; empty in a build without Gloo.
// Collective.
Peer gloo_peer(Communicator& comm);

// Sums over sockets of one host, by ranks that sleep whenever they wait. Collective.
Peer sockets_peer(Communicator& comm);

}  // namespace rondo::perf
