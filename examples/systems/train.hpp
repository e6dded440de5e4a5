// The ways in which rondo-systems trains.
#pragma once

#include <rondo/communicator.hpp>

#include "options.hpp"

namespace lenet::systems {

// All are collective over all ranks of the program; rank 0 prints, and writes files.
void train_on_host(const SystemOptions& options, rondo::Communicator& ranks);
void train_on_devices(const SystemOptions& options, rondo::Communicator ranks);
// The last ranks are parameter servers.
void train_served(const SystemOptions& options, rondo::Communicator& ranks);
// Neighbouring ranks compute the parts of one model.
void train_split(const SystemOptions& options, rondo::Communicator& ranks);

}  // namespace lenet::systems
