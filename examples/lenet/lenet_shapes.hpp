// LeNet's parameters, as the articles have them.
#pragma once

#include <cstddef>
#include <memory>

#include "examples/layers/parameters.hpp"

namespace lenet {

enum Parameter : std::size_t { kW1, kB1, kW2, kB2, kW3, kB3, kW4, kB4, kParameterCount };

// Weights from N(0, 0.01²) and biases 0.
const std::shared_ptr<const ParameterShapes>& lenet_shapes();

}  // namespace lenet
