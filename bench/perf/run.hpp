// A whole run of rondo-perf on one rank.
#pragma once

#include <rondo/communicator.hpp>

#include "bench/perf/measure.hpp"

namespace rondo::perf {

// Collective. Prints and writes on rank 0. Returns the number of wrong elements.
std::uint64_t run(Communicator& comm, const Options& options, const Peer& mpi);

// Runs a group of options.ranks threads in this process.
std::uint64_t run_local_group(const Options& options);

}  // namespace rondo::perf
