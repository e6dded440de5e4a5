#include "parameters.hpp"

#include <xxhash.h>

#include <algorithm>
#include <optional>
#include <random>

namespace lenet {

ParameterShapes::ParameterShapes(std::vector<ParameterShape> shapes)
    : shapes_(std::move(shapes)), offsets_(1) {
  for (const ParameterShape& shape : shapes_) offsets_.push_back(offsets_.back() + shape.count());
}

std::vector<bool> elements_of_part(const ParameterShape& shape) {
  if (!shape.whole) return std::vector<bool>(shape.count(), true);
  std::vector<bool> mine(ParameterShape::count_of(*shape.whole));
  for (std::size_t i = 0; i < mine.size(); ++i) {
    bool inside = true;
    auto rest = static_cast<std::int64_t>(i);
    for (std::size_t dim = shape.dims.size(); dim-- > 0;) {
      const std::int64_t at = rest % (*shape.whole)[dim] - shape.first[dim];
      rest /= (*shape.whole)[dim];
      inside = inside && at >= 0 && at < shape.dims[dim];
    }
    mine[i] = inside;
  }
  return mine;
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
    // Biases have no deviation, and a normal distribution must have one.
    std::optional<std::normal_distribution<float>> normal;
    if (shape.deviation > 0) normal.emplace(shape.mean, shape.deviation);
    float* next = parameters[i].data();
    for (const bool mine : elements_of_part(shape)) {
      const float value = normal ? (*normal)(random) : shape.mean;
      if (mine) *next++ = value;
    }
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
