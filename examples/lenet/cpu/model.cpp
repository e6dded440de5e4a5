#include "model.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "onednn.hpp"

namespace lenet {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using Dims = memory::dims;

memory::desc describe(const Dims& dims, Tag tag) { return {dims, memory::data_type::f32, tag}; }

struct Operation {
  dnnl::primitive primitive;
  std::unordered_map<int, memory> arguments;
  std::vector<std::size_t> completes;  // parameters whose gradients are complete after it
};

// Operations in the order in which they run.
class Sequence {
 public:
  explicit Sequence(dnnl::engine engine) : engine_(std::move(engine)) {}

  void add(const dnnl::primitive& primitive, std::unordered_map<int, memory> arguments) {
    operations_.push_back({primitive, std::move(arguments), {}});
  }
  // The gradients of `parameters` are complete after the operation that was added last.
  void complete(std::initializer_list<std::size_t> parameters) {
    operations_.back().completes = parameters;
  }
  [[nodiscard]] memory buffer(const memory::desc& desc) const { return {desc, engine_}; }
  // `from` in the layout `wanted`: itself, or a copy that a reordering step keeps up to date.
  memory reordered(const memory& from, const memory::desc& wanted) {
    if (from.get_desc() == wanted) return from;
    memory to = buffer(wanted);
    copy(from, to);
    return to;
  }
  void copy(const memory& from, const memory& to) {
    add(dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  }
  void run(dnnl::stream& stream, const GradientReady& ready) const {
    for (const Operation& operation : operations_) {
      operation.primitive.execute(stream, operation.arguments);
      if (operation.completes.empty()) continue;
      stream.wait();
      for (const std::size_t parameter : operation.completes) ready(parameter);
    }
    stream.wait();
  }

 private:
  dnnl::engine engine_;
  std::vector<Operation> operations_;
};

}  // namespace

// All that is needed for one batch size: forward and backward sequences over one set of buffers.
class Model::Graph {
 public:
  Graph(std::size_t batch, ParameterBlock& parameters, ParameterBlock& gradients)
      : batch_(static_cast<memory::dim>(batch)) {
    images_ = forward_.buffer(describe({batch_, 1, 28, 28}, Tag::nchw));
    const auto parameter = [&](std::size_t which, const Dims& dims, Tag tag) {
      return Pair{which, memory(describe(dims, tag), engine_, parameters[which].data()),
                  memory(describe(dims, tag), engine_, gradients[which].data())};
    };
    // W3 and W4 are stored input by output; W3's 800 inputs are 50 channels of 4×4 pixels.
    const Pair w1 = parameter(kW1, {20, 1, 3, 3}, Tag::oihw);
    const Pair b1 = parameter(kB1, {20}, Tag::x);
    const Pair w2 = parameter(kW2, {50, 20, 5, 5}, Tag::oihw);
    const Pair b2 = parameter(kB2, {50}, Tag::x);
    const Pair w3 = parameter(kW3, {128, 50, 4, 4}, Tag::ihwo);
    const Pair b3 = parameter(kB3, {128}, Tag::x);
    const Pair w4 = parameter(kW4, {10, 128}, Tag::io);
    const Pair b4 = parameter(kB4, {10}, Tag::x);

    const Convolution conv1 = convolution(images_, w1, b1, {batch_, 20, 26, 26});
    const Pooling pool1 = pooling(conv1.output, {batch_, 20, 13, 13});
    const Convolution conv2 = convolution(pool1.output, w2, b2, {batch_, 50, 9, 9});
    const Pooling pool2 = pooling(conv2.output, {batch_, 50, 4, 4});
    const Dense dense1 = dense(pool2.output, w3, b3, 128, true);
    const Dense dense2 = dense(dense1.output, w4, b4, 10, false);
    log_probabilities_ = log_softmax(dense2.output);
    logit_slopes_ = backward_.buffer(describe({batch_, 10}, Tag::nc));

    const memory slopes4 = dense_backward(dense2, w4, b4, logit_slopes_);
    const memory slopes3 = dense_backward(dense1, w3, b3, relu_backward(dense1.output, slopes4));
    const memory slopes2 =
        relu_backward(conv2.output, pooling_backward(pool2, conv2.output, slopes3));
    convolution_backward_weights(conv2, w2, b2, slopes2);
    const memory slopes1 = convolution_backward_data(conv2, w2, slopes2);
    convolution_backward_weights(
        conv1, w1, b1, relu_backward(conv1.output, pooling_backward(pool1, conv1.output, slopes1)));
  }

  BatchResult forward(std::span<const float> images, std::span<const std::uint8_t> labels) {
    std::copy(images.begin(), images.end(), static_cast<float*>(images_.get_data_handle()));
    forward_.run(stream_, {});
    BatchResult result;
    const auto* log_probabilities = static_cast<float*>(log_probabilities_.get_data_handle());
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const float* row = log_probabilities + i * kClasses;
      result.loss -= static_cast<double>(row[labels[i]]);
      const auto answer = static_cast<std::size_t>(std::max_element(row, row + kClasses) - row);
      result.correct += answer == labels[i] ? 1 : 0;
    }
    return result;
  }

  // After forward() on the same batch.
  void backward(std::span<const std::uint8_t> labels, const GradientReady& ready) {
    const auto* log_probabilities = static_cast<float*>(log_probabilities_.get_data_handle());
    auto* slopes = static_cast<float*>(logit_slopes_.get_data_handle());
    for (std::size_t i = 0; i < labels.size(); ++i) {
      for (std::size_t c = 0; c < kClasses; ++c) {
        const std::size_t at = i * kClasses + c;
        slopes[at] = std::exp(log_probabilities[at]) - (labels[i] == c ? 1.0F : 0.0F);
      }
    }
    backward_.run(stream_, ready);
  }

 private:
  struct Pair {  // a parameter and its gradient, both in the layout that the trainer keeps
    std::size_t parameter;
    memory value;
    memory slope;
  };
  struct Convolution {
    dnnl::convolution_forward::primitive_desc forward;
    memory input;
    memory output;
  };
  struct Pooling {
    dnnl::pooling_forward::primitive_desc forward;
    memory output;
  };
  struct Dense {
    dnnl::inner_product_forward::primitive_desc forward;
    memory input;
    memory output;
  };

  // Channels last: blocks of 16 would pad 20 and 50 channels to 32 and 64, and so double the
  // arithmetic of the second convolution.
  Convolution convolution(const memory& input, const Pair& weights, const Pair& bias,
                          const Dims& output) {
    Convolution layer{
        onednn::convolution_forward(engine_, describe(onednn::dims_of(input.get_desc()), Tag::nhwc),
                                    any_layout(weights), bias.value.get_desc(),
                                    describe(output, Tag::nhwc), onednn::with_relu()),
        {},
        {}};
    layer.input = forward_.reordered(input, layer.forward.src_desc());
    layer.output = forward_.buffer(layer.forward.dst_desc());
    forward_.add(
        dnnl::convolution_forward(layer.forward),
        {{DNNL_ARG_SRC, layer.input},
         {DNNL_ARG_WEIGHTS, forward_.reordered(weights.value, layer.forward.weights_desc())},
         {DNNL_ARG_BIAS, bias.value},
         {DNNL_ARG_DST, layer.output}});
    return layer;
  }

  void convolution_backward_weights(const Convolution& layer, const Pair& weights, const Pair& bias,
                                    const memory& slopes) {
    const auto backward = onednn::convolution_backward_weights(
        engine_, layer.forward.src_desc(), any_layout(weights), bias.slope.get_desc(),
        layer.forward.dst_desc(), layer.forward);
    const memory gradient = gradient_buffer(weights, backward.diff_weights_desc());
    backward_.add(dnnl::convolution_backward_weights(backward), {{DNNL_ARG_SRC, layer.input},
                                                                 {DNNL_ARG_DIFF_DST, slopes},
                                                                 {DNNL_ARG_DIFF_WEIGHTS, gradient},
                                                                 {DNNL_ARG_DIFF_BIAS, bias.slope}});
    store_gradient(weights, gradient);
    backward_.complete({bias.parameter, weights.parameter});
  }

  memory convolution_backward_data(const Convolution& layer, const Pair& weights,
                                   const memory& slopes) {
    const auto backward =
        onednn::convolution_backward_data(engine_, layer.forward.src_desc(), any_layout(weights),
                                          layer.forward.dst_desc(), layer.forward);
    memory result = backward_.buffer(backward.diff_src_desc());
    backward_.add(dnnl::convolution_backward_data(backward),
                  {{DNNL_ARG_WEIGHTS, backward_.reordered(weights.value, backward.weights_desc())},
                   {DNNL_ARG_DIFF_DST, slopes},
                   {DNNL_ARG_DIFF_SRC, result}});
    return result;
  }

  Pooling pooling(const memory& input, const Dims& output) {
    Pooling layer{onednn::pooling_forward(engine_, input.get_desc(), describe(output, Tag::nhwc)),
                  {}};
    layer.output = forward_.buffer(layer.forward.dst_desc());
    forward_.add(dnnl::pooling_forward(layer.forward),
                 {{DNNL_ARG_SRC, input}, {DNNL_ARG_DST, layer.output}});
    return layer;
  }

  memory pooling_backward(const Pooling& layer, const memory& input, const memory& slopes) {
    const auto backward = onednn::pooling_backward(engine_, input.get_desc(),
                                                   layer.forward.dst_desc(), layer.forward);
    memory result = backward_.buffer(backward.diff_src_desc());
    backward_.add(dnnl::pooling_backward(backward),
                  {{DNNL_ARG_DIFF_DST, backward_.reordered(slopes, layer.forward.dst_desc())},
                   {DNNL_ARG_DIFF_SRC, result}});
    return result;
  }

  Dense dense(const memory& input, const Pair& weights, const Pair& bias, memory::dim outputs,
              bool relu) {
    Dense layer{onednn::dense_forward(engine_, input.get_desc(), any_layout(weights),
                                      bias.value.get_desc(), describe({batch_, outputs}, Tag::nc),
                                      relu ? onednn::with_relu() : dnnl::primitive_attr()),
                input,
                {}};
    layer.output = forward_.buffer(layer.forward.dst_desc());
    forward_.add(
        dnnl::inner_product_forward(layer.forward),
        {{DNNL_ARG_SRC, input},
         {DNNL_ARG_WEIGHTS, forward_.reordered(weights.value, layer.forward.weights_desc())},
         {DNNL_ARG_BIAS, bias.value},
         {DNNL_ARG_DST, layer.output}});
    return layer;
  }

  // Computes the gradients of the layer's parameters; returns the slopes of its input.
  memory dense_backward(const Dense& layer, const Pair& weights, const Pair& bias,
                        const memory& slopes) {
    const auto of_weights = onednn::dense_backward_weights(
        engine_, layer.forward.src_desc(), any_layout(weights), bias.slope.get_desc(),
        layer.forward.dst_desc(), layer.forward);
    const memory gradient = gradient_buffer(weights, of_weights.diff_weights_desc());
    backward_.add(dnnl::inner_product_backward_weights(of_weights),
                  {{DNNL_ARG_SRC, layer.input},
                   {DNNL_ARG_DIFF_DST, slopes},
                   {DNNL_ARG_DIFF_WEIGHTS, gradient},
                   {DNNL_ARG_DIFF_BIAS, bias.slope}});
    store_gradient(weights, gradient);
    backward_.complete({bias.parameter, weights.parameter});
    const auto of_data =
        onednn::dense_backward_data(engine_, layer.forward.src_desc(), any_layout(weights),
                                    layer.forward.dst_desc(), layer.forward);
    memory result = backward_.buffer(of_data.diff_src_desc());
    backward_.add(dnnl::inner_product_backward_data(of_data),
                  {{DNNL_ARG_WEIGHTS, backward_.reordered(weights.value, of_data.weights_desc())},
                   {DNNL_ARG_DIFF_DST, slopes},
                   {DNNL_ARG_DIFF_SRC, result}});
    return result;
  }

  // Returns the slopes where the ReLU's output, and so its input, is above 0, and 0 elsewhere.
  memory relu_backward(const memory& output, const memory& slopes) {
    const memory::desc desc = output.get_desc();
    memory result = backward_.buffer(desc);
    backward_.add(dnnl::eltwise_backward(onednn::relu_backward(engine_, desc)),
                  {{DNNL_ARG_DST, output},
                   {DNNL_ARG_DIFF_DST, backward_.reordered(slopes, desc)},
                   {DNNL_ARG_DIFF_SRC, result}});
    return result;
  }

  memory log_softmax(const memory& input) {
    const auto desc = onednn::log_softmax_forward(engine_, input.get_desc());
    memory result = forward_.buffer(desc.dst_desc());
    forward_.add(onednn::LogSoftmax(desc), {{DNNL_ARG_SRC, input}, {DNNL_ARG_DST, result}});
    return result;
  }

  // The weights' shape, in the layout that oneDNN chooses.
  static memory::desc any_layout(const Pair& weights) {
    return describe(onednn::dims_of(weights.value.get_desc()), Tag::any);
  }

  // oneDNN writes a gradient into the trainer's memory if it uses the trainer's layout, else into a buffer.
  [[nodiscard]] memory gradient_buffer(const Pair& weights, const memory::desc& desc) const {
    return desc == weights.slope.get_desc() ? weights.slope : backward_.buffer(desc);
  }
  void store_gradient(const Pair& weights, const memory& gradient) {
    if (gradient.get_data_handle() != weights.slope.get_data_handle()) {
      backward_.copy(gradient, weights.slope);
    }
  }

  memory::dim batch_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  Sequence forward_{engine_};
  Sequence backward_{engine_};
  memory images_;
  memory log_probabilities_;
  memory logit_slopes_;
};

Model::Model(ParameterBlock& parameters, ParameterBlock& gradients)
    : parameters_(parameters), gradients_(gradients) {}
Model::~Model() = default;

void Model::forget_sizes() { graphs_.clear(); }

Model::Graph& Model::graph_for(std::size_t batch) {
  std::unique_ptr<Graph>& graph = graphs_[batch];
  if (!graph) graph = std::make_unique<Graph>(batch, parameters_, gradients_);
  return *graph;
}

BatchResult Model::forward_backward(std::span<const float> images,
                                    std::span<const std::uint8_t> labels,
                                    const std::function<void()>& begin,
                                    const GradientReady& ready) {
  if (labels.empty()) {
    begin();
    std::fill(gradients_.all().begin(), gradients_.all().end(), 0.0F);
    for (std::size_t i = kParameterCount; i-- > 0;) ready(i);
    return {};
  }
  Graph& graph = graph_for(labels.size());
  const BatchResult result = graph.forward(images, labels);
  begin();
  graph.backward(labels, ready);
  return result;
}

BatchResult Model::forward(std::span<const float> images, std::span<const std::uint8_t> labels) {
  if (labels.empty()) return {};
  return graph_for(labels.size()).forward(images, labels);
}

}  // namespace lenet
