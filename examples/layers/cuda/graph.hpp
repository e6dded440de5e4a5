// A model's layers on a GPU for one batch size, most of them by cuDNN and cuBLAS: what
// cpu/graph.hpp is on the CPU, with the same words for the layers, so that one description of a
// model serves both. Activations are samples × channels × pixels.
//
// All that layers need is allocated as they are named, so that forward() and backward() can be
// captured in a CUDA graph.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "batch_norm.hpp"
#include "examples/layers/exchange.hpp"
#include "examples/layers/layers.hpp"
#include "examples/layers/parameters.hpp"
#include "kernels.hpp"
#include "libraries.hpp"

namespace lenet::cuda {

// Parameters, or gradients of them, in device memory, in the order of a ParameterBlock.
struct DeviceParameters {
  float* values = nullptr;
  const ParameterShapes* shapes = nullptr;

  [[nodiscard]] float* operator[](std::size_t parameter) const {
    return values + shapes->offset(parameter);
  }
};

class Graph {
 public:
  // How a parameter lies in memory, the last index running fastest: of a convolution or a dense
  // layer by output and input, of a dense layer by input and output (`ihwo`: by channel and pixel
  // of the input), or one value for each output.
  enum class Tag : std::uint8_t { oihw, ihwo, io, x };
  struct Tensor {
    std::size_t number = 0;
  };
  struct Weights {
    std::size_t parameter = 0;
    std::vector<std::int64_t> dims;
    Tag tag = Tag::x;
  };

  // Enqueues on the libraries' stream. Borrows all that it is given. `norms`: the state of the
  // model's batch normalisations, which all its graphs share.
  Graph(const Libraries& on, std::size_t batch, Purpose purpose, const DeviceParameters& parameters,
        const DeviceParameters& gradients, BatchNorms& norms);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  [[nodiscard]] static Weights weights(std::size_t parameter, const std::vector<std::int64_t>& dims,
                                       Tag tag) {
    return {parameter, dims, tag};
  }

  // The layers: the samples' numbers first (a vector is that many channels of side 1), and the
  // logits last, of which softmax and cross-entropy are taken.
  Tensor inputs(std::int64_t channels, std::int64_t side);
  Tensor convolution(Tensor input, const Weights& weights, const Weights& bias,
                     const Window& window, bool relu);
  Tensor average_pooling(Tensor input, std::int64_t side);
  Tensor dense(Tensor input, const Weights& weights, const Weights& bias, bool relu);
  Tensor batch_norm(Tensor input, std::size_t gamma, std::size_t beta);
  Tensor relu(Tensor input);
  Tensor add(Tensor one, Tensor other);
  void end_in(Tensor logits);

  // Where the batch goes before forward().
  [[nodiscard]] float* input_data() const { return activations_.front()->values.get(); }
  [[nodiscard]] std::uint8_t* labels() const { return labels_.get(); }
  // Of one sample.
  [[nodiscard]] std::size_t input_elems() const {
    return activations_.front()->dims.count() / static_cast<std::size_t>(batch_);
  }
  [[nodiscard]] std::size_t classes() const { return static_cast<std::size_t>(logits_->dims.c); }

  // Adds the batch's loss and right answers to `totals`.
  void forward(Totals* totals);
  // After forward(), of a graph for training: leaves in the gradients the sums over the samples;
  // calls `ready` for each gradient once all work that computes it is on the stream.
  void backward(const GradientReady& ready);

  // What a rank without samples does in place of these two, when its caller has set its gradients
  // to zero: it takes part in the sums over the ranks, and calls `ready` in the same order as the
  // others. A device may have no room for kernels of two communicators at once; then ranks whose
  // order differs would wait for each other for ever.
  void join_forward() const;
  void join_backward(const GradientReady& ready) const;

 private:
  using Backward = std::function<void(const GradientReady&)>;

  struct Activation {
    explicit Activation(const Dims& of) : dims(of), shape(shape_of(of)), values(of.count()) {}

    Dims dims;
    TensorShape shape;
    Buffer<float> values;
    Buffer<float> slopes;
    bool has_slopes =
        false;  // as the layers that run backward are named: one of them has written slopes
  };

  Tensor activation(const Dims& dims);
  [[nodiscard]] Activation& at(Tensor tensor) const { return *activations_[tensor.number]; }
  void add_bias(const Activation& output, const TensorShape& shape, std::size_t parameter) const;
  // Sets the slopes of an output to 0 where the output, that of a ReLU, is 0.
  void stop_at_relu(const Activation& output) const;
  // Names what runs backward, once the graph is complete: last layer first.
  void backward_of(std::function<void()> name) { tape_.push_back(std::move(name)); }
  // After a layer that backward() computes both gradients of.
  void complete_in_order(std::size_t bias, std::size_t weights);
  // For a layer that writes slopes of its input: 0 for the first one that does, 1 for those that
  // add theirs.
  const float* keep_slopes(Activation& input);

  const Libraries& on_;
  int batch_;
  Purpose purpose_;
  DeviceParameters parameters_;
  DeviceParameters gradients_;
  BatchNorms& norms_;
  std::size_t norms_used_ = 0;
  Buffer<std::uint8_t> labels_;
  std::vector<std::unique_ptr<Activation>> activations_;
  std::vector<std::function<void()>> forward_;
  std::vector<Backward> backward_;
  std::vector<std::function<void()>> joined_forward_;  // by a rank without samples
  std::vector<Backward> joined_backward_;
  std::vector<std::function<void()>> tape_;
  Activation* logits_ = nullptr;
  Buffer<float> log_probabilities_;
};

}  // namespace lenet::cuda
