#include "parameters.hpp"

#include <xxhash.h>

#include <algorithm>
#include <random>

namespace lenet {

ParameterShapes::ParameterShapes(std::vector<ParameterShape> shapes)
    : shapes_(std::move(shapes)), offsets_(1) {
  for (const ParameterShape& shape : shapes_) offsets_.push_back(offsets_.back() + shape.count());
}

ParameterBlock& ParameterBlock::operator=(const ParameterBlock& other) {
  if (this == &other) return *this;
  std::copy(other.values_.begin(), other.values_.end(), values_.begin());
  return *this;
}

void ParameterBlock::move_to(std::span<float> memory) {
  std::copy(values_.begin(), values_.end(), memory.begin());
  values_ = memory.first(values_.size());
  own_ = {};
}

void initialise(ParameterBlock& parameters, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const ParameterShape& shape = (*parameters.shapes())[i];
    std::normal_distribution<float> normal(shape.mean, shape.deviation);
    for (float& value : parameters[i]) value = shape.deviation > 0 ? normal(random) : shape.mean;
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
