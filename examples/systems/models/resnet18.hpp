// ResNet-18 as the articles have it for small images: a convolution 64×3×3 in place of 7×7 with
// stride 2, and no pooling after it; then four stages of two residual blocks, average pooling, and
// a dense layer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "examples/layers/layers.hpp"
#include "examples/layers/parameters.hpp"

namespace lenet::systems {

namespace resnet18 {

inline constexpr int kStages = 4;
inline constexpr std::int64_t kFirstChannels = 64;
inline constexpr std::int64_t kLastChannels = kFirstChannels << (kStages - 1);
inline constexpr std::int64_t kLastSide = 4;  // 28, 14, 7, 4
inline constexpr std::int64_t kClasses = 10;

// A convolution with batch normalisation: four parameters, which shapes() and Builder take in the
// same order.
struct Unit {
  std::int64_t inputs;
  std::int64_t outputs;
  Window window;
};

// Of a residual block: two convolutions, and a third beside them where the shape changes.
struct Block {
  Unit first;
  Unit second;
  bool changes_shape;
  Unit beside;
};

inline constexpr Unit kStem = {1, kFirstChannels, {3, 1, 1}};
std::vector<Block> blocks();

// Weights from N(0, 0.01²), biases 0, gammas 1.
const std::shared_ptr<const ParameterShapes>& shapes();

// Adds layers to a graph; each takes the next parameters.
template <class Graph>
class Builder {
 public:
  using Tensor = typename Graph::Tensor;
  using Tag = typename Graph::Tag;

  explicit Builder(Graph& graph) : graph_(graph) {}

  Tensor unit(Tensor input, const Unit& unit) {
    const std::int64_t side = unit.window.side;
    const std::size_t first = next_;
    next_ += 4;
    const Tensor x = graph_.convolution(
        input, graph_.weights(first, {unit.outputs, unit.inputs, side, side}, Tag::oihw),
        graph_.weights(first + 1, {unit.outputs}, Tag::x), unit.window, false);
    return graph_.batch_norm(x, first + 2, first + 3);
  }
  Tensor block(Tensor input, const Block& block) {
    Tensor x = graph_.relu(unit(input, block.first));
    x = unit(x, block.second);
    const Tensor beside = block.changes_shape ? unit(input, block.beside) : input;
    return graph_.relu(graph_.add(x, beside));
  }
  void dense(Tensor input) {
    graph_.end_in(graph_.dense(input,
                               graph_.weights(next_, {kClasses, kLastChannels, 1, 1}, Tag::oihw),
                               graph_.weights(next_ + 1, {kClasses}, Tag::x), false));
  }

 private:
  Graph& graph_;
  std::size_t next_ = 0;
};

}  // namespace resnet18

// `Graph` is the one for CPUs or the one for GPUs.
template <class Graph>
void build_resnet18(Graph& graph) {
  resnet18::Builder<Graph> builder(graph);
  auto x = graph.relu(builder.unit(graph.inputs(1, 28), resnet18::kStem));
  for (const resnet18::Block& block : resnet18::blocks()) x = builder.block(x, block);
  builder.dense(graph.average_pooling(x, resnet18::kLastSide));
}

}  // namespace lenet::systems
