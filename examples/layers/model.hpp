// What the trainer asks of a model on the CPU.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "exchange.hpp"

namespace lenet {

// Sums over samples: divide by their number for averages.
struct BatchResult {
  double loss = 0;
  std::int64_t correct = 0;
};

// A model for any batch size, over parameters and gradients that it borrows. Not thread-safe.
class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  // `inputs`: the numbers of the samples, one sample after the other; `labels`: one class for each.
  // Leaves in the gradients the sum over the samples of the loss's derivative; zeros for an empty
  // batch. Calls `begin` when backprop begins, and `ready` for each gradient when it is complete.
  virtual BatchResult forward_backward(std::span<const float> inputs,
                                       std::span<const std::uint8_t> labels,
                                       const std::function<void()>& begin,
                                       const GradientReady& ready) = 0;
  // The loss and the number of correct answers alone.
  virtual BatchResult forward(std::span<const float> inputs,
                              std::span<const std::uint8_t> labels) = 0;
  // What the model keeps beside its parameters: moving averages. Valid as long as the model.
  virtual std::vector<std::span<float>> statistics() { return {}; }
  // Frees what is kept for each batch size seen.
  virtual void forget_sizes() {}
};

}  // namespace lenet
