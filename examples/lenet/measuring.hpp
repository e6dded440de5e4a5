// What rondo-lenet measures instead of training.
#pragma once

#include <rondo/communicator.hpp>

#include "options.hpp"

namespace lenet {

// Collective: exchanges of gradients alone, by the strategy of the options. Rank 0 prints.
void measure_exchanges(const Options& options, rondo::Communicator& ranks);

// Collective: steps without communication, with communication after backprop, and during it. Rank 0
// prints.
void measure_steps(const Options& options, rondo::Communicator& comm);

}  // namespace lenet
