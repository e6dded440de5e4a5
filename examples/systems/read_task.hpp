// What the options say of the task, on one rank.
#pragma once

#include <rondo/communicator.hpp>

#include "options.hpp"
#include "tasks.hpp"

namespace lenet::systems {

// Throws DataError.
Dataset read_data(const SystemOptions& options);

// How batch normalisation sums over the ranks of `comm`; empty where each rank normalises by its
// own samples. Collective.
SumOverRanks sum_norms(const SystemOptions& options, rondo::Communicator& comm);

}  // namespace lenet::systems
