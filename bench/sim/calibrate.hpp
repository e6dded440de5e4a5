// Measures what a Network says, on the ranks of a communicator.
#pragma once

#include <rondo/communicator.hpp>

#include "bench/sim/network.hpp"

namespace rondo::sim {

// Between rank 0 and the first rank of another host, by messages; what ranks compute, on rank 0.
// Collective; the result is rank 0's. Throws std::runtime_error where all ranks are on one host.
Network measure_network(Communicator& comm);

}  // namespace rondo::sim
