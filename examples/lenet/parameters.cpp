#include "parameters.hpp"

#include <xxhash.h>

#include <random>

namespace lenet {

void initialise(ParameterBlock& parameters, std::uint64_t seed) {
  constexpr float kDeviation = 0.01F;
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0F, kDeviation);
  for (const std::size_t weights : {kW1, kW2, kW3, kW4}) {
    for (float& value : parameters[weights]) value = normal(random);
  }
  for (const std::size_t biases : {kB1, kB2, kB3, kB4}) {
    for (float& value : parameters[biases]) value = 0.0F;
  }
}

void descend(ParameterBlock& parameters, const ParameterBlock& gradients, float rate) {
  const std::span<float> values = parameters.all();
  const std::span<const float> slopes = gradients.all();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= rate * slopes[i];
}

std::uint64_t hash_of(const ParameterBlock& parameters) {
  return XXH3_64bits(parameters.all().data(), parameters.all().size_bytes());
}

}  // namespace lenet
