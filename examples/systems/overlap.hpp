// How much of the trainer's communication is hidden behind its backprop.
#pragma once

#include <memory>
#include <rondo/communicator.hpp>
#include <string>

#include "examples/layers/exchange.hpp"
#include "examples/layers/learner.hpp"
#include "tools/overlap/three_modes.hpp"

namespace lenet::systems {

Exchange exchange_in(const std::shared_ptr<rondo::overlap::ThreeModes>& modes);

// Takes `steps` steps in each mode, by turns. Collective. Parameters stay as they are if the
// learning rate is 0.
rondo::overlap::Measured measure_overlap(rondo::Communicator& comm, Learner& learner,
                                         rondo::overlap::ThreeModes& modes, int steps,
                                         std::size_t minibatches);

// `progress_place`: where the reducer's thread runs.
void print(const rondo::overlap::Measured& measured, const std::string& progress_place);

}  // namespace lenet::systems
