#include "spirals.hpp"

#include <cmath>
#include <numbers>
#include <random>
#include <utility>
#include <vector>

namespace lenet::systems::spirals {
namespace {

float deviation(std::int64_t inputs) { return std::sqrt(2.0F / static_cast<float>(inputs)); }

// Class c begins in the middle at the angle c · 2π/3 and goes once around, to the distance 1.
Samples points(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> along(0, 1);
  std::normal_distribution<float> noise(0, 0.1F);
  constexpr float kRound = 2 * std::numbers::pi_v<float>;
  std::vector<float> numbers;
  std::vector<std::uint8_t> labels;
  for (std::size_t i = 0; i < count; ++i) {
    const auto label = static_cast<std::uint8_t>(i % kOutputs);
    const float distance = along(random);
    const float angle = kRound * (static_cast<float>(label) / kOutputs + distance) + noise(random);
    numbers.push_back(distance * std::cos(angle));
    numbers.push_back(distance * std::sin(angle));
    labels.push_back(label);
  }
  return samples_of_floats(kInputs, std::move(numbers), std::move(labels));
}

}  // namespace

const std::shared_ptr<const ParameterShapes>& shapes() {
  static const auto kShapes = std::make_shared<const ParameterShapes>(std::vector<ParameterShape>{
      {"first.weight", {kWidth, kInputs, 1, 1}, deviation(kInputs)},
      {"first.bias", {kWidth, 1, 1, 1}},
      {"second.weight", {kWidth, kWidth, 1, 1}, deviation(kWidth)},
      {"second.bias", {kWidth, 1, 1, 1}},
      {"third.weight", {kWidth, kOutputs, 1, 1}, deviation(kWidth)},
      {"third.bias", {kOutputs, 1, 1, 1}},
  });
  return kShapes;
}

Dataset samples() { return {points(3072, 1), points(768, 2)}; }

}  // namespace lenet::systems::spirals
