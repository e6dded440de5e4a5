// MPI's own collectives, called as rondo's are.
#pragma once

#include <mpi.h>

#include "bench/perf/measure.hpp"

namespace rondo::perf {

// `comm` is borrowed. Types that MPI lacks (f16, bf16), avg, and counts beyond an int have no peer.
Peer mpi_peer(MPI_Comm comm);

}  // namespace rondo::perf
