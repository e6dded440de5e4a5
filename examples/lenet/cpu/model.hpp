// LeNet as the articles have it, computed by oneDNN: convolution 20×3×3, ReLU, average pooling 2×2,
// convolution 50×5×5, ReLU, average pooling 2×2, dense 800→128, ReLU, dense 128→10, softmax
// cross-entropy. Activations keep the layouts that oneDNN chose from one layer to the next.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>

#include "learner.hpp"
#include "parameters.hpp"

namespace lenet {

// A model for any batch size; buffers and primitives are made once for each size seen. Borrows the
// parameters and gradients, which must outlive it. Not thread-safe.
class Model {
 public:
  Model(ParameterBlock& parameters, ParameterBlock& gradients);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // `images`: batch × 784 values in [0, 1]; `labels`: one class for each. Leaves in the gradients
  // the sum over the samples of the loss's derivative; zeros for an empty batch.
  // Calls `begin` when backprop begins, and `ready` for each gradient when it is complete.
  BatchResult forward_backward(
      std::span<const float> images, std::span<const std::uint8_t> labels,
      const std::function<void()>& begin = [] {}, const GradientReady& ready = [](std::size_t) {});
  // Frees the buffers of all batch sizes seen.
  void forget_sizes();
  // The loss and the number of correct answers alone.
  BatchResult forward(std::span<const float> images, std::span<const std::uint8_t> labels);

 private:
  class Graph;
  Graph& graph_for(std::size_t batch);

  ParameterBlock& parameters_;
  ParameterBlock& gradients_;
  std::map<std::size_t, std::unique_ptr<Graph>> graphs_;
};

}  // namespace lenet
