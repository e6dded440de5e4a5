// How a rank's gradients are summed over the ranks, during backprop or after it.
#pragma once

#include <cstddef>
#include <functional>

#include "parameters.hpp"

namespace lenet {

using GradientReady = std::function<void(std::size_t parameter)>;

struct Exchange {
  // Called when backprop begins.
  std::function<void()> begin = [] {};
  // Called when the gradient of a parameter is complete.
  GradientReady ready = [](std::size_t) {};
  // Returns when all gradients are the sums over the ranks.
  std::function<void()> finish = [] {};
};

// Borrows the gradients.
using MakeExchange = std::function<Exchange(ParameterBlock&)>;

}  // namespace lenet
