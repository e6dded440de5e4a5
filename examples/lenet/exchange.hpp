// What becomes of a rank's gradients while backprop produces them.
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
  // Backprop begins.
  std::function<void()> begin = [] {};
  // The gradient of a parameter is complete.
  GradientReady ready = [](std::size_t) {};
  // Returns when all gradients are the sums over the ranks.
  std::function<void()> finish = [] {};
};

// Borrows the gradients.
using MakeExchange = std::function<Exchange(ParameterBlock&)>;

// Sums the gradients of all ranks, in place, in host memory.
using SumGradients = std::function<void(std::span<float>)>;

// All at once, after backprop.
Exchange exchange_by(SumGradients sum, ParameterBlock& gradients);

// The parameters by their names, for a reducer of their gradients.
std::vector<rondo::Parameter> reducible(ParameterBlock& gradients);

// Bucket by bucket, while backprop goes on.
Exchange exchange_by(const std::shared_ptr<rondo::GradientReducer>& reducer);

}  // namespace lenet
