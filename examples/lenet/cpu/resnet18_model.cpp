// ResNet-18 as the articles have it for small images: a convolution 64×3×3 in place of 7×7 with stride 2, and no pooling
// after it; then four stages of two residual blocks, average pooling, and a dense layer.
#include <string>
#include <vector>

#include "onednn_model.hpp"
#include "task.hpp"

namespace lenet {
namespace {

using dnnl::memory;
using Tag = Graph::Tag;
using Tensor = Graph::Tensor;
using onednn::Window;

constexpr int kStages = 4;
constexpr memory::dim kFirstChannels = 64;
constexpr memory::dim kClassesOfAll = 10;

// A convolution with batch normalisation: four parameters, which make_shapes() and Builder take in the same order.
struct Unit {
  memory::dim inputs;
  memory::dim outputs;
  Window window;
};

// Of a residual block: two convolutions, and a third beside them where the shape changes.
struct Block {
  Unit first;
  Unit second;
  bool changes_shape;
  Unit beside;
};

constexpr Window kStem = {3, 1, 1};

std::vector<Block> blocks() {
  std::vector<Block> result;
  memory::dim inputs = kFirstChannels;
  for (int stage = 0; stage < kStages; ++stage) {
    const memory::dim outputs = kFirstChannels << stage;
    for (int block = 0; block < 2; ++block) {
      const bool changes = stage > 0 && block == 0;
      const memory::dim stride = changes ? 2 : 1;
      result.push_back({{inputs, outputs, {3, stride, 1}},
                        {outputs, outputs, {3, 1, 1}},
                        changes,
                        {inputs, outputs, {1, stride, 0}}});
      inputs = outputs;
    }
  }
  return result;
}

void add_shapes(std::vector<ParameterShape>& shapes, const std::string& name, const Unit& unit) {
  constexpr float kDeviation = 0.01F;
  shapes.push_back({name + ".weight",
                    {unit.outputs, unit.inputs, unit.window.side, unit.window.side},
                    kDeviation});
  shapes.push_back({name + ".bias", {unit.outputs, 1, 1, 1}});
  shapes.push_back({name + ".gamma", {unit.outputs, 1, 1, 1}, 0, 1});
  shapes.push_back({name + ".beta", {unit.outputs, 1, 1, 1}});
}

std::vector<ParameterShape> make_shapes() {
  std::vector<ParameterShape> shapes;
  add_shapes(shapes, "stem", {1, kFirstChannels, kStem});
  int number = 0;
  for (const Block& block : blocks()) {
    const std::string name = "block" + std::to_string(number++);
    add_shapes(shapes, name + ".first", block.first);
    add_shapes(shapes, name + ".second", block.second);
    if (block.changes_shape) add_shapes(shapes, name + ".beside", block.beside);
  }
  const memory::dim last = kFirstChannels << (kStages - 1);
  shapes.push_back({"dense.weight", {kClassesOfAll, last, 1, 1}, 0.01F});
  shapes.push_back({"dense.bias", {kClassesOfAll, 1, 1, 1}});
  return shapes;
}

// Adds layers to a graph; each takes the next parameters.
class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}

  Tensor unit(Tensor input, const Unit& unit) {
    const memory::dim side = unit.window.side;
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
    const memory::dim inputs = kFirstChannels << (kStages - 1);
    graph_.end_in(graph_.dense(input,
                               graph_.weights(next_, {kClassesOfAll, inputs, 1, 1}, Tag::oihw),
                               graph_.weights(next_ + 1, {kClassesOfAll}, Tag::x), false));
  }

 private:
  Graph& graph_;
  std::size_t next_ = 0;
};

void build_resnet18(Graph& graph) {
  constexpr memory::dim kLastSide = 4;  // 28, 14, 7, 4
  Builder builder(graph);
  Tensor x = graph.relu(builder.unit(graph.images(1, 28), {1, kFirstChannels, kStem}));
  for (const Block& block : blocks()) x = builder.block(x, block);
  builder.dense(graph.average_pooling(x, kLastSide));
}

}  // namespace

const Task& resnet18_task() {
  static const Task kTask{
      "resnet18", std::make_shared<const ParameterShapes>(make_shapes()), read_dataset,
      [](ParameterBlock& parameters, ParameterBlock& gradients, const SumOverRanks& sum) {
        return std::make_unique<OnednnModel>(parameters, gradients, build_resnet18, sum);
      }};
  return kTask;
}

}  // namespace lenet
