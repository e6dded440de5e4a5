// How a rank's gradients are summed over the ranks, during backprop or after it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <rondo/communicator.hpp>
#include <rondo/gradient_reducer.hpp>
#include <span>

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

// Sums the gradients of all ranks, in place, in host memory.
using SumGradients = std::function<void(std::span<float>)>;

// Sums all gradients at once, after backprop.
Exchange exchange_by(SumGradients sum, ParameterBlock& gradients);

// The parameters with their names and gradients, as a GradientReducer takes them.
std::vector<rondo::Parameter> reducible(ParameterBlock& gradients);

// Sums gradients bucket by bucket, during backprop.
Exchange exchange_by(const std::shared_ptr<rondo::GradientReducer>& reducer);

}  // namespace lenet
