// Measures from which size on which algorithm is the fastest, and writes it for RONDO_TUNING.
#pragma once

#include <rondo/communicator.hpp>

#include "bench/perf/options.hpp"

namespace rondo::perf {

// Collective. Replaces what the file says of this number of ranks and this carrier, and leaves the rest.
void tune(Communicator& comm, const Options& options);

}  // namespace rondo::perf
