#include "lenet_layers.hpp"
#include "lenet_shapes.hpp"
#include "onednn_model.hpp"
#include "task.hpp"

namespace lenet {

using dnnl::memory;
using Tag = Graph::Tag;
using Tensor = Graph::Tensor;

Graph::Weights bias(Graph& graph, std::size_t parameter, memory::dim outputs) {
  return graph.weights(parameter, {outputs}, Tag::x);
}

// W3 and W4 are stored input by output; W3's inputs are 4×4 pixels of each channel.
Graph::Weights first_dense(Graph& graph, memory::dim channels, memory::dim outputs) {
  return graph.weights(kW3, {outputs, channels, kLastSide, kLastSide}, Tag::ihwo);
}

Graph::Weights second_dense(Graph& graph, memory::dim inputs, memory::dim outputs) {
  return graph.weights(kW4, {outputs, inputs}, Tag::io);
}

Tensor convolutions(Graph& graph) {
  constexpr memory::dim kFirst = 20;
  auto x = graph.images(1, kImageSide);
  x = graph.convolution(x, graph.weights(kW1, {kFirst, 1, 3, 3}, Tag::oihw),
                        bias(graph, kB1, kFirst), {3}, true);
  x = graph.average_pooling(x, 2);
  x = graph.convolution(x, graph.weights(kW2, {kLastChannels, kFirst, 5, 5}, Tag::oihw),
                        bias(graph, kB2, kLastChannels), {5}, true);
  return graph.average_pooling(x, 2);
}

Tensor dense_layers(Graph& graph, Tensor input) {
  const Tensor hidden = graph.dense(input, first_dense(graph, kLastChannels, kHidden),
                                    bias(graph, kB3, kHidden), true);
  return graph.dense(hidden, second_dense(graph, kHidden, kClasses), bias(graph, kB4, kClasses),
                     false);
}

const Task& lenet_task() {
  static const Task kTask{
      "lenet", lenet_shapes(), read_dataset,
      [](ParameterBlock& parameters, ParameterBlock& gradients, const SumOverRanks& /*sum*/) {
        return std::make_unique<OnednnModel>(parameters, gradients, [](Graph& graph) {
          graph.end_in(dense_layers(graph, convolutions(graph)));
        });
      }};
  return kTask;
}

}  // namespace lenet
