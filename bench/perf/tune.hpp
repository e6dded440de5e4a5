// Measures which algorithm is the fastest at which sizes, and writes a file for RONDO_TUNING.
#pragma once

#include <rondo/communicator.hpp>

#include "bench/perf/options.hpp"

namespace rondo::perf {

// Collective. Replaces the file's rules for this carrier and number of ranks, and keeps its other
// rules.
void tune(Communicator& comm, const Options& options);

}  // namespace rondo::perf
