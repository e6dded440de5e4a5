// LeNet as the articles have it: convolution 20×3×3, ReLU, average pooling 2×2, convolution 50×5×5,
// ReLU, average pooling 2×2, dense 800→128, ReLU, dense 128→10, softmax cross-entropy. `Graph` is
// the one for CPUs or the one for GPUs.
#pragma once

#include <cstdint>

#include "examples/layers/idx.hpp"
#include "lenet_shapes.hpp"

namespace lenet {

inline constexpr std::int64_t kLastChannels = 50;  // of the convolutions,
inline constexpr std::int64_t kLastSide = 4;       // 4×4 pixels each
inline constexpr std::int64_t kHidden = 128;       // outputs of the first dense layer

// Parameter `parameter`, a bias.
template <class Graph>
auto bias(Graph& graph, std::size_t parameter, std::int64_t outputs) {
  return graph.weights(parameter, {outputs}, Graph::Tag::x);
}

// W3 and W4, or parts of them. Both are stored input by output; W3's inputs are 4×4 pixels of each
// channel.
template <class Graph>
auto first_dense(Graph& graph, std::int64_t channels, std::int64_t outputs) {
  return graph.weights(kW3, {outputs, channels, kLastSide, kLastSide}, Graph::Tag::ihwo);
}
template <class Graph>
auto second_dense(Graph& graph, std::int64_t inputs, std::int64_t outputs) {
  return graph.weights(kW4, {outputs, inputs}, Graph::Tag::io);
}

// From images to the second pooling.
template <class Graph>
auto convolutions(Graph& graph) {
  constexpr std::int64_t kFirst = 20;
  auto x = graph.inputs(1, kImageSide);
  x = graph.convolution(x, graph.weights(kW1, {kFirst, 1, 3, 3}, Graph::Tag::oihw),
                        bias(graph, kB1, kFirst), {3}, true);
  x = graph.average_pooling(x, 2);
  x = graph.convolution(x, graph.weights(kW2, {kLastChannels, kFirst, 5, 5}, Graph::Tag::oihw),
                        bias(graph, kB2, kLastChannels), {5}, true);
  return graph.average_pooling(x, 2);
}

// From there to the logits.
template <class Graph>
auto dense_layers(Graph& graph, typename Graph::Tensor input) {
  const auto hidden = graph.dense(input, first_dense(graph, kLastChannels, kHidden),
                                  bias(graph, kB3, kHidden), true);
  return graph.dense(hidden, second_dense(graph, kHidden, kClasses), bias(graph, kB4, kClasses),
                     false);
}

template <class Graph>
void build_lenet(Graph& graph) {
  graph.end_in(dense_layers(graph, convolutions(graph)));
}

}  // namespace lenet
