#include "resnet18.hpp"

#include <string>

namespace lenet::systems::resnet18 {
namespace {

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
  add_shapes(shapes, "stem", kStem);
  int number = 0;
  for (const Block& block : blocks()) {
    const std::string name = "block" + std::to_string(number++);
    add_shapes(shapes, name + ".first", block.first);
    add_shapes(shapes, name + ".second", block.second);
    if (block.changes_shape) add_shapes(shapes, name + ".beside", block.beside);
  }
  shapes.push_back({"dense.weight", {kClasses, kLastChannels, 1, 1}, 0.01F});
  shapes.push_back({"dense.bias", {kClasses, 1, 1, 1}});
  return shapes;
}

}  // namespace

std::vector<Block> blocks() {
  std::vector<Block> result;
  std::int64_t inputs = kFirstChannels;
  for (int stage = 0; stage < kStages; ++stage) {
    const std::int64_t outputs = kFirstChannels << stage;
    for (int block = 0; block < 2; ++block) {
      const bool changes = stage > 0 && block == 0;
      const std::int64_t stride = changes ? 2 : 1;
      result.push_back({{inputs, outputs, {3, stride, 1}},
                        {outputs, outputs, {3, 1, 1}},
                        changes,
                        {inputs, outputs, {1, stride, 0}}});
      inputs = outputs;
    }
  }
  return result;
}

const std::shared_ptr<const ParameterShapes>& shapes() {
  static const auto kShapes = std::make_shared<const ParameterShapes>(make_shapes());
  return kShapes;
}

}  // namespace lenet::systems::resnet18
