// What rondo-systems measures instead of training.
#pragma once

#include <rondo/communicator.hpp>

#include "options.hpp"

namespace lenet::systems {

// Collective: exchanges of gradients alone, by the strategy of the options. Rank 0 prints.
void measure_exchanges(const SystemOptions& options, rondo::Communicator& ranks);

// Collective: steps without communication, with communication after backprop, and during it. Rank 0
// prints.
void measure_steps(const SystemOptions& options, rondo::Communicator& comm);

}  // namespace lenet::systems
