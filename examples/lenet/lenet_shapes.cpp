#include "lenet_shapes.hpp"

namespace lenet {

const std::shared_ptr<const ParameterShapes>& lenet_shapes() {
  constexpr float kDeviation = 0.01F;
  static const auto kShapes = std::make_shared<const ParameterShapes>(std::vector<ParameterShape>{
      {"W1", {20, 1, 3, 3}, kDeviation},
      {"b1", {20, 1, 1, 1}},
      {"W2", {50, 20, 5, 5}, kDeviation},
      {"b2", {50, 1, 1, 1}},
      {"W3", {800, 128, 1, 1}, kDeviation},
      {"b3", {128, 1, 1, 1}},
      {"W4", {128, 10, 1, 1}, kDeviation},
      {"b4", {10, 1, 1, 1}},
  });
  return kShapes;
}

}  // namespace lenet
