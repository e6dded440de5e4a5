// A model's layers for one batch size: operations forward and backward over one set of buffers, most of them oneDNN's. A
// model names its layers forward; the graph derives what runs backward.
//
// Activations are channels last, since oneDNN's blocks of 16 channels would pad LeNet's 20 and 50 to 32 and 64, and so
// double the arithmetic of its second convolution.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "batch_norm.hpp"
#include "model.hpp"
#include "onednn.hpp"
#include "parameters.hpp"
#include "sequence.hpp"

namespace lenet {

// What a graph is made for.
enum class Purpose : std::uint8_t { training, evaluation };

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
  [[nodiscard]] Weights weights(std::size_t parameter, const Dims& dims, Tag tag);

  // The layers. Images: batch × channels × side × side.
  Tensor images(Memory::dim channels, Memory::dim side);
  Tensor convolution(Tensor input, const Weights& weights, const Weights& bias,
                     const onednn::Window& window, bool relu);
  Tensor average_pooling(Tensor input, Memory::dim side);
  Tensor dense(Tensor input, const Weights& weights, const Weights& bias, bool relu);
  Tensor batch_norm(Tensor input, std::size_t gamma, std::size_t beta);
  Tensor relu(Tensor input);
  Tensor add(Tensor one, Tensor other);
  // The last layer: softmax and cross-entropy of the logits.
  void end_in(Tensor logits);

  BatchResult forward(std::span<const float> images, std::span<const std::uint8_t> labels);
  // After forward() on the same batch.
  void backward(std::span<const std::uint8_t> labels, const GradientReady& ready);

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
  Memory images_;
  Memory log_probabilities_;
  Memory logit_slopes_;
  std::size_t classes_ = 0;
};

}  // namespace lenet
