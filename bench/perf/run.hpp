// A whole run of rondo-perf on one rank.
#pragma once

#include <rondo/communicator.hpp>

#include "bench/perf/measure.hpp"

namespace rondo::perf {

// Collective. Measures on host memory, or joins the ranks' devices and measures on theirs. Prints and
// writes on rank 0. Returns the number of wrong elements.
std::uint64_t run(Communicator comm, const Options& options, const Peer& mpi);

// Runs a group of options.ranks threads in this process.
std::uint64_t run_local_group(const Options& options);

// Runs options.processes processes that this one forks; only before it has made a thread or used a
// device.
std::uint64_t run_processes_of_this_host(const Options& options);

}  // namespace rondo::perf
