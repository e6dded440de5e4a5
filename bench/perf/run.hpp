// A whole run of rondo-perf on one rank.
#pragma once

#include <rondo/communicator.hpp>

#include "bench/perf/measure.hpp"

namespace rondo::perf {

// Collective. Measures on host memory, or joins the ranks' devices and measures on theirs. Prints
// and writes on rank 0. Returns the number of wrong elements.
std::uint64_t run(Communicator comm, const Options& options, const Peers& peers);

}  // namespace rondo::perf
