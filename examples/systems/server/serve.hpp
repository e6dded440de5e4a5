// A parameter server: answers what workers ask of its shard.
#pragma once

#include <rondo/communicator.hpp>
#include <vector>

#include "shard.hpp"

namespace lenet::systems {

// Returns when all workers have said that they are done. `workers`: a communicator for each
// (pair_up()); they end with this function, so that no worker waits for a server that has failed.
// Throws what first went wrong with any of them.
void serve(std::vector<rondo::Communicator> workers, Shard& shard);

}  // namespace lenet::systems
