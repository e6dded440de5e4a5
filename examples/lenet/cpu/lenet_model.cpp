// LeNet as the articles have it: convolution 20×3×3, ReLU, average pooling 2×2, convolution 50×5×5, ReLU, average pooling
// 2×2, dense 800→128, ReLU, dense 128→10, softmax cross-entropy.
#include "lenet_shapes.hpp"
#include "onednn_model.hpp"
#include "task.hpp"

namespace lenet {
namespace {

using Tag = Graph::Tag;

void build_lenet(Graph& graph) {
  const auto bias = [&](std::size_t parameter, dnnl::memory::dim outputs) {
    return graph.weights(parameter, {outputs}, Tag::x);
  };
  auto x = graph.images(1, 28);
  x = graph.convolution(x, graph.weights(kW1, {20, 1, 3, 3}, Tag::oihw), bias(kB1, 20), {3}, true);
  x = graph.average_pooling(x, 2);
  x = graph.convolution(x, graph.weights(kW2, {50, 20, 5, 5}, Tag::oihw), bias(kB2, 50), {5}, true);
  x = graph.average_pooling(x, 2);
  // W3 and W4 are stored input by output; W3's 800 inputs are 50 channels of 4×4 pixels.
  x = graph.dense(x, graph.weights(kW3, {128, 50, 4, 4}, Tag::ihwo), bias(kB3, 128), true);
  x = graph.dense(x, graph.weights(kW4, {10, 128}, Tag::io), bias(kB4, 10), false);
  graph.end_in(x);
}

}  // namespace

const Task& lenet_task() {
  static const Task kTask{
      "lenet", lenet_shapes(), read_dataset,
      [](ParameterBlock& parameters, ParameterBlock& gradients, const SumOverRanks& /*sum*/) {
        return std::make_unique<OnednnModel>(parameters, gradients, build_lenet);
      }};
  return kTask;
}

}  // namespace lenet
