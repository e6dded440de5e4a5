// A model's layers for one batch size: operations forward and backward over one set of buffers,
// most of them oneDNN's. A model names its layers forward; the graph derives what runs backward.
//
// Activations are channels last, since oneDNN's blocks of 16 channels would pad LeNet's 20 and 50
// to 32 and 64, and so double the arithmetic of its second convolution.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "batch_norm.hpp"
#include "examples/layers/layers.hpp"
#include "examples/layers/model.hpp"
#include "examples/layers/parameters.hpp"
#include "onednn.hpp"
#include "sequence.hpp"

namespace lenet {

class Graph {
 public:
  using Dims = dnnl::memory::dims;
  using Tag = dnnl::memory::format_tag;
  using Memory = dnnl::memory;

  // `norms`: the state of the model's batch normalisations, which all its graphs share.
  Graph(std::size_t batch, Purpose purpose, ParameterBlock& parameters, ParameterBlock& gradients,
        BatchNorms& norms);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // An activation, by its number.
  struct Tensor {
    std::size_t number = 0;
  };
  // A parameter and its gradient, both in the layout that the trainer keeps.
  struct Weights {
    std::size_t parameter = 0;
    Memory value;
    Memory slope;
  };
  // Of a parameter that another rank has, and this one nothing of: zeros, and a gradient that
  // nobody reads.
  [[nodiscard]] Weights weights(std::size_t parameter, const Dims& dims, Tag tag);

  // The layers. First one of these: batch × channels × side × side, of samples, whose slopes nobody
  // wants, or of another graph's last layer, channels last. A vector is that many channels of
  // side 1.
  Tensor inputs(Memory::dim channels, Memory::dim side);
  Tensor activations(Memory::dim channels, Memory::dim side);
  Tensor convolution(Tensor input, const Weights& weights, const Weights& bias,
                     const Window& window, bool relu);
  Tensor average_pooling(Tensor input, Memory::dim side);
  Tensor dense(Tensor input, const Weights& weights, const Weights& bias, bool relu);
  Tensor batch_norm(Tensor input, std::size_t gamma, std::size_t beta);
  Tensor relu(Tensor input);
  Tensor add(Tensor one, Tensor other);
  // A layer that changes the channels alone: `forward` computes the output from the input,
  // `backward` the slopes of the input from those of the output. Channels last.
  using Pass = std::function<void(std::span<const float> from, std::span<float> to)>;
  Tensor custom(Tensor input, Memory::dim channels, const Pass& forward, const Pass& backward);
  // The last layer, one of these: softmax and cross-entropy of the logits, or what another graph
  // goes on with.
  void end_in(Tensor logits);
  void leave(Tensor last);

  // Where the graph ends in logits.
  BatchResult forward(std::span<const float> input, std::span<const std::uint8_t> labels);
  // After forward() on the same batch.
  void backward(std::span<const std::uint8_t> labels, const GradientReady& ready);

  // Where another graph goes on: what it gets, channels last, valid until the next call.
  std::span<const float> forward(std::span<const float> input);
  // After forward(): `slopes` are those of what the other graph got.
  void backward(std::span<const float> slopes, const GradientReady& ready);
  // After backward(), where this graph goes on from another: those of what it got.
  [[nodiscard]] std::span<const float> input_slopes() const;
  [[nodiscard]] std::size_t input_elements() const;
  [[nodiscard]] std::size_t output_elements() const;

 private:
  struct Activation {
    Memory value;
    Memory slopes;  // what backward() has computed of them; empty: nothing yet
    bool wanted;    // whether their slopes are
  };

  Tensor activation(const Memory& value, bool wanted = true);
  [[nodiscard]] const Memory& value(Tensor tensor) const {
    return activations_[tensor.number].value;
  }
  // What builds the operations that run backward, once the graph is complete: last layer first.
  void backward_of(std::function<void()> build) { tape_.push_back(std::move(build)); }
  void add_slopes(Tensor tensor, const Memory& slopes);
  // In the layout of the activation itself.
  Memory slopes_of(Tensor tensor);
  Memory through_relu(Tensor output, const Memory& slopes);
  void add_gradients(const Weights& weights, const Memory& gradient, const Weights& bias);
  [[nodiscard]] Memory gradient_buffer(const Weights& weights, const Memory::desc& desc) const;
  // Builds what runs backward from the slopes of the last layer's output.
  void derive_backward(Tensor last);
  void run_forward(std::span<const float> input);

  Memory::dim batch_;
  Purpose purpose_;
  ParameterBlock& parameters_;
  ParameterBlock& gradients_;
  BatchNorms& norms_;
  std::size_t norms_used_ = 0;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  Sequence forward_{engine_};
  Sequence backward_{engine_};
  std::vector<Activation> activations_;
  std::vector<std::function<void()>> tape_;
  Memory input_slopes_;  // empty where nobody wants them
  Memory output_;        // of the last layer
  Memory output_slopes_;
  Memory log_probabilities_;
  std::size_t classes_ = 0;
};

}  // namespace lenet
