#include "graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <utility>

namespace lenet {
namespace {

using dnnl::memory;
using Dims = memory::dims;
using Tag = memory::format_tag;

memory::desc describe(const Dims& dims, Tag tag) { return {dims, memory::data_type::f32, tag}; }

Dims dims_of(const memory& value) { return onednn::dims_of(value.get_desc()); }

std::size_t count_of(const Dims& dims) {
  std::size_t count = 1;
  for (const memory::dim dim : dims) count *= static_cast<std::size_t>(dim);
  return count;
}

// Of activations whose layout the trainer chose.
std::span<float> floats_of(const memory& value) {
  return {static_cast<float*>(value.get_data_handle()), count_of(dims_of(value))};
}

// The weights' shape, in the layout that oneDNN chooses.
memory::desc any_layout(const Graph::Weights& weights) {
  return describe(dims_of(weights.value), Tag::any);
}

}  // namespace

Graph::Graph(std::size_t batch, Purpose purpose, ParameterBlock& parameters,
             ParameterBlock& gradients, BatchNorms& norms)
    : batch_(static_cast<memory::dim>(batch)),
      purpose_(purpose),
      parameters_(parameters),
      gradients_(gradients),
      norms_(norms) {}

Graph::Weights Graph::weights(std::size_t parameter, const Dims& dims, Tag tag) {
  const std::size_t count = count_of(dims);
  if (!parameters_[parameter].empty() && parameters_[parameter].size() != count) {
    throw std::invalid_argument(fmt::format("parameter {} has {} values, and its layer takes {}",
                                            (*parameters_.shapes())[parameter].name,
                                            parameters_[parameter].size(), count));
  }
  if (parameters_[parameter].empty()) {
    const memory zeros = forward_.buffer(describe(dims, tag));
    std::fill(floats_of(zeros).begin(), floats_of(zeros).end(), 0.0F);
    return {parameter, zeros, backward_.buffer(describe(dims, tag))};
  }
  return {parameter, memory(describe(dims, tag), engine_, parameters_[parameter].data()),
          memory(describe(dims, tag), engine_, gradients_[parameter].data())};
}

Graph::Tensor Graph::activation(const memory& value, bool wanted) {
  activations_.push_back({value, {}, wanted});
  return {activations_.size() - 1};
}

// A layer's input may be the input of other layers, too: their slopes add up.
void Graph::add_slopes(Tensor tensor, const memory& slopes) {
  memory& sum = activations_[tensor.number].slopes;
  if (!sum) {
    sum = slopes;
    return;
  }
  const memory before = slopes_of(tensor);
  const memory other = backward_.reordered(slopes, before.get_desc());
  sum = backward_.buffer(before.get_desc());
  backward_.add([before, other, to = sum] {
    const std::span<float> out = floats_of(to);
    const std::span<float> a = floats_of(before);
    const std::span<float> b = floats_of(other);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = a[i] + b[i];
  });
}

memory Graph::slopes_of(Tensor tensor) {
  const Activation& its = activations_[tensor.number];
  return backward_.reordered(its.slopes, its.value.get_desc());
}

// The slopes where the ReLU's output, and so its input, is above 0, and 0 elsewhere.
memory Graph::through_relu(Tensor output, const memory& slopes) {
  const memory::desc desc = value(output).get_desc();
  memory result = backward_.buffer(desc);
  backward_.add(dnnl::eltwise_backward(onednn::relu_backward(engine_, desc)),
                {{DNNL_ARG_DST, value(output)},
                 {DNNL_ARG_DIFF_DST, backward_.reordered(slopes, desc)},
                 {DNNL_ARG_DIFF_SRC, result}});
  return result;
}

// oneDNN writes a gradient into the trainer's memory if it uses the trainer's layout, else into a
// buffer.
memory Graph::gradient_buffer(const Weights& weights, const memory::desc& desc) const {
  return desc == weights.slope.get_desc() ? weights.slope : backward_.buffer(desc);
}

// After the operation that computes both.
void Graph::add_gradients(const Weights& weights, const memory& gradient, const Weights& bias) {
  if (gradient.get_data_handle() != weights.slope.get_data_handle()) {
    backward_.copy(gradient, weights.slope);
  }
  backward_.complete({bias.parameter, weights.parameter});
}

Graph::Tensor Graph::inputs(memory::dim channels, memory::dim side) {
  return activation(forward_.buffer(describe({batch_, channels, side, side}, Tag::nchw)), false);
}

Graph::Tensor Graph::activations(memory::dim channels, memory::dim side) {
  return activation(forward_.buffer(describe({batch_, channels, side, side}, Tag::nhwc)));
}

Graph::Tensor Graph::convolution(Tensor input, const Weights& weights, const Weights& bias,
                                 const Window& window, bool relu) {
  const Dims in = dims_of(value(input));
  const Dims out = {batch_, dims_of(weights.value)[0], window.outputs(in[2]),
                    window.outputs(in[3])};
  const auto layer = onednn::convolution_forward(
      engine_, describe(in, Tag::nhwc), any_layout(weights), bias.value.get_desc(),
      describe(out, Tag::nhwc), window, relu ? onednn::with_relu() : dnnl::primitive_attr());
  const memory source = forward_.reordered(value(input), layer.src_desc());
  const Tensor output = activation(forward_.buffer(layer.dst_desc()));
  forward_.add(dnnl::convolution_forward(layer),
               {{DNNL_ARG_SRC, source},
                {DNNL_ARG_WEIGHTS, forward_.reordered(weights.value, layer.weights_desc())},
                {DNNL_ARG_BIAS, bias.value},
                {DNNL_ARG_DST, value(output)}});
  backward_of([=, this] {
    memory slopes = slopes_of(output);
    if (relu) slopes = through_relu(output, slopes);
    const auto of_weights = onednn::convolution_backward_weights(
        engine_, layer.src_desc(), any_layout(weights), bias.slope.get_desc(), layer.dst_desc(),
        window, layer);
    const memory gradient = gradient_buffer(weights, of_weights.diff_weights_desc());
    backward_.add(dnnl::convolution_backward_weights(of_weights),
                  {{DNNL_ARG_SRC, source},
                   {DNNL_ARG_DIFF_DST, slopes},
                   {DNNL_ARG_DIFF_WEIGHTS, gradient},
                   {DNNL_ARG_DIFF_BIAS, bias.slope}});
    add_gradients(weights, gradient, bias);
    if (!activations_[input.number].wanted) return;
    const auto of_data = onednn::convolution_backward_data(
        engine_, layer.src_desc(), any_layout(weights), layer.dst_desc(), window, layer);
    const memory result = backward_.buffer(of_data.diff_src_desc());
    backward_.add(dnnl::convolution_backward_data(of_data),
                  {{DNNL_ARG_WEIGHTS, backward_.reordered(weights.value, of_data.weights_desc())},
                   {DNNL_ARG_DIFF_DST, slopes},
                   {DNNL_ARG_DIFF_SRC, result}});
    add_slopes(input, result);
  });
  return output;
}

Graph::Tensor Graph::average_pooling(Tensor input, memory::dim side) {
  const Dims in = dims_of(value(input));
  const auto layer = onednn::pooling_forward(
      engine_, value(input).get_desc(),
      describe({batch_, in[1], in[2] / side, in[3] / side}, Tag::nhwc), side);
  const Tensor output = activation(forward_.buffer(layer.dst_desc()));
  forward_.add(dnnl::pooling_forward(layer),
               {{DNNL_ARG_SRC, value(input)}, {DNNL_ARG_DST, value(output)}});
  backward_of([=, this] {
    const auto backward =
        onednn::pooling_backward(engine_, value(input).get_desc(), layer.dst_desc(), layer, side);
    const memory result = backward_.buffer(backward.diff_src_desc());
    backward_.add(dnnl::pooling_backward(backward),
                  {{DNNL_ARG_DIFF_DST, slopes_of(output)}, {DNNL_ARG_DIFF_SRC, result}});
    add_slopes(input, result);
  });
  return output;
}

Graph::Tensor Graph::dense(Tensor input, const Weights& weights, const Weights& bias, bool relu) {
  const auto layer = onednn::dense_forward(engine_, value(input).get_desc(), any_layout(weights),
                                           bias.value.get_desc(),
                                           describe({batch_, dims_of(weights.value)[0]}, Tag::nc),
                                           relu ? onednn::with_relu() : dnnl::primitive_attr());
  const Tensor output = activation(forward_.buffer(layer.dst_desc()));
  forward_.add(dnnl::inner_product_forward(layer),
               {{DNNL_ARG_SRC, value(input)},
                {DNNL_ARG_WEIGHTS, forward_.reordered(weights.value, layer.weights_desc())},
                {DNNL_ARG_BIAS, bias.value},
                {DNNL_ARG_DST, value(output)}});
  backward_of([=, this] {
    memory slopes = slopes_of(output);
    if (relu) slopes = through_relu(output, slopes);
    const auto of_weights =
        onednn::dense_backward_weights(engine_, layer.src_desc(), any_layout(weights),
                                       bias.slope.get_desc(), layer.dst_desc(), layer);
    const memory gradient = gradient_buffer(weights, of_weights.diff_weights_desc());
    backward_.add(dnnl::inner_product_backward_weights(of_weights),
                  {{DNNL_ARG_SRC, value(input)},
                   {DNNL_ARG_DIFF_DST, slopes},
                   {DNNL_ARG_DIFF_WEIGHTS, gradient},
                   {DNNL_ARG_DIFF_BIAS, bias.slope}});
    add_gradients(weights, gradient, bias);
    if (!activations_[input.number].wanted) return;
    const auto of_data = onednn::dense_backward_data(engine_, layer.src_desc(), any_layout(weights),
                                                     layer.dst_desc(), layer);
    const memory result = backward_.buffer(of_data.diff_src_desc());
    backward_.add(dnnl::inner_product_backward_data(of_data),
                  {{DNNL_ARG_WEIGHTS, backward_.reordered(weights.value, of_data.weights_desc())},
                   {DNNL_ARG_DIFF_DST, slopes},
                   {DNNL_ARG_DIFF_SRC, result}});
    add_slopes(input, result);
  });
  return output;
}

Graph::Tensor Graph::batch_norm(Tensor input, std::size_t gamma, std::size_t beta) {
  const Dims dims = dims_of(value(input));
  const auto channels = static_cast<std::size_t>(dims[1]);
  const std::size_t layer = norms_used_++;
  if (norms_.layers.size() == layer) norms_.layers.emplace_back(channels);
  const auto pass =
      std::make_shared<BatchNormPass>(floats_of(value(input)).size() / channels, channels);
  // Sample by sample and pixel by pixel, with the channels last.
  const memory in =
      forward_.reordered(value(input), describe(dims, dims.size() == 4 ? Tag::nhwc : Tag::nc));
  const Tensor output = activation(forward_.buffer(in.get_desc()));
  const memory out = value(output);
  forward_.add([=, this] {
    BatchNorm& norm = norms_.layers[layer];
    const float* from = floats_of(in).data();
    float* to = floats_of(out).data();
    if (purpose_ == Purpose::training) {
      pass->train(norm, norms_.sum_over_ranks, from, parameters_[gamma], parameters_[beta], to);
    } else {
      pass->evaluate(norm, from, parameters_[gamma], parameters_[beta], to);
    }
  });
  backward_of([=, this] {
    const memory slopes = slopes_of(output);
    const memory result = backward_.buffer(in.get_desc());
    backward_.add([=, this] {
      pass->backward(norms_.sum_over_ranks, floats_of(in).data(), parameters_[gamma],
                     floats_of(slopes).data(), floats_of(result).data(), gradients_[gamma],
                     gradients_[beta]);
    });
    backward_.complete({beta, gamma});
    add_slopes(input, result);
  });
  return output;
}

Graph::Tensor Graph::relu(Tensor input) {
  const Tensor output = activation(forward_.buffer(value(input).get_desc()));
  forward_.add([in = value(input), out = value(output)] {
    const std::span<float> from = floats_of(in);
    const std::span<float> to = floats_of(out);
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = std::max(from[i], 0.0F);
  });
  backward_of([=, this] { add_slopes(input, through_relu(output, slopes_of(output))); });
  return output;
}

Graph::Tensor Graph::add(Tensor one, Tensor other) {
  const Tensor output = activation(forward_.buffer(value(one).get_desc()));
  const memory same = forward_.reordered(value(other), value(one).get_desc());
  forward_.add([a = value(one), b = same, out = value(output)] {
    const std::span<float> left = floats_of(a);
    const std::span<float> right = floats_of(b);
    const std::span<float> to = floats_of(out);
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = left[i] + right[i];
  });
  backward_of([=, this] {
    const memory slopes = slopes_of(output);
    add_slopes(one, slopes);
    add_slopes(other, slopes);
  });
  return output;
}

Graph::Tensor Graph::custom(Tensor input, memory::dim channels, const Pass& forward,
                            const Pass& backward) {
  Dims dims = dims_of(value(input));
  dims[1] = channels;
  const Tensor output =
      activation(forward_.buffer(describe(dims, dims.size() == 4 ? Tag::nhwc : Tag::nc)));
  forward_.add(
      [=, from = value(input), to = value(output)] { forward(floats_of(from), floats_of(to)); });
  backward_of([=, this] {
    const memory slopes = slopes_of(output);
    const memory result = backward_.buffer(value(input).get_desc());
    backward_.add([=] { backward(floats_of(slopes), floats_of(result)); });
    add_slopes(input, result);
  });
  return output;
}

void Graph::derive_backward(Tensor last) {
  output_ = value(last);
  if (purpose_ == Purpose::training) {
    output_slopes_ = backward_.buffer(output_.get_desc());
    add_slopes(last, output_slopes_);
    for (auto build = tape_.rbegin(); build != tape_.rend(); ++build) (*build)();
    if (activations_.front().wanted) input_slopes_ = slopes_of(Tensor{0});
  }
  tape_.clear();
}

void Graph::end_in(Tensor logits) {
  const auto layer = onednn::log_softmax_forward(engine_, value(logits).get_desc());
  log_probabilities_ = forward_.buffer(layer.dst_desc());
  forward_.add(onednn::LogSoftmax(layer),
               {{DNNL_ARG_SRC, value(logits)}, {DNNL_ARG_DST, log_probabilities_}});
  classes_ = static_cast<std::size_t>(dims_of(value(logits))[1]);
  derive_backward(logits);
}

void Graph::leave(Tensor last) { derive_backward(last); }

void Graph::run_forward(std::span<const float> input) {
  if (input.size() != input_elements()) {
    throw std::invalid_argument(fmt::format("{} samples of this model are {} numbers, not {}",
                                            batch_, input_elements(), input.size()));
  }
  std::copy(input.begin(), input.end(), floats_of(value(Tensor{0})).begin());
  forward_.run(stream_, {});
}

BatchResult Graph::forward(std::span<const float> input, std::span<const std::uint8_t> labels) {
  run_forward(input);
  BatchResult result;
  const float* log_probabilities = floats_of(log_probabilities_).data();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= classes_) {
      throw std::invalid_argument(
          fmt::format("a sample is of class {}, and this model knows {}", labels[i], classes_));
    }
    const float* row = log_probabilities + i * classes_;
    result.loss -= static_cast<double>(row[labels[i]]);
    const auto answer = static_cast<std::size_t>(std::max_element(row, row + classes_) - row);
    result.correct += answer == labels[i] ? 1 : 0;
  }
  return result;
}

void Graph::backward(std::span<const std::uint8_t> labels, const GradientReady& ready) {
  const float* log_probabilities = floats_of(log_probabilities_).data();
  float* slopes = floats_of(output_slopes_).data();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    for (std::size_t c = 0; c < classes_; ++c) {
      const std::size_t at = i * classes_ + c;
      slopes[at] = std::exp(log_probabilities[at]) - (labels[i] == c ? 1.0F : 0.0F);
    }
  }
  backward_.run(stream_, ready);
}

std::span<const float> Graph::forward(std::span<const float> input) {
  run_forward(input);
  return floats_of(output_);
}

void Graph::backward(std::span<const float> slopes, const GradientReady& ready) {
  std::copy(slopes.begin(), slopes.end(), floats_of(output_slopes_).begin());
  backward_.run(stream_, ready);
}

std::span<const float> Graph::input_slopes() const { return floats_of(input_slopes_); }

std::size_t Graph::input_elements() const { return floats_of(value(Tensor{0})).size(); }

std::size_t Graph::output_elements() const { return floats_of(output_).size(); }

}  // namespace lenet
