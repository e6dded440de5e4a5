// The model's parameters: eight arrays in one block of memory, in forward order, with plain
// layouts.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace lenet {

struct ParameterShape {
  std::string_view name;
  std::array<std::int64_t, 4> dims;  // unused dimensions are 1

  [[nodiscard]] constexpr std::size_t count() const {
    return static_cast<std::size_t>(dims[0] * dims[1] * dims[2] * dims[3]);
  }
};

enum Parameter : std::size_t { kW1, kB1, kW2, kB2, kW3, kB3, kW4, kB4, kParameterCount };

inline constexpr std::array<ParameterShape, kParameterCount> kShapes = {{
    {"W1", {20, 1, 3, 3}},
    {"b1", {20, 1, 1, 1}},
    {"W2", {50, 20, 5, 5}},
    {"b2", {50, 1, 1, 1}},
    {"W3", {800, 128, 1, 1}},
    {"b3", {128, 1, 1, 1}},
    {"W4", {128, 10, 1, 1}},
    {"b4", {10, 1, 1, 1}},
}};

// Parameters, or gradients of them: one value for each.
class ParameterBlock {
 public:
  static constexpr std::size_t kCount = [] {
    std::size_t count = 0;
    for (const ParameterShape& shape : kShapes) count += shape.count();
    return count;
  }();

  ParameterBlock() : own_(kCount), values_(own_) {}
  // Copies have memory of their own.
  ParameterBlock(const ParameterBlock& other)
      : own_(other.values_.begin(), other.values_.end()), values_(own_) {}
  ParameterBlock& operator=(const ParameterBlock& other) {
    std::copy(other.values_.begin(), other.values_.end(), values_.begin());
    return *this;
  }
  ~ParameterBlock() = default;

  // From now on the values are in `memory`, which has room for kCount of them and outlives the block.
  void move_to(std::span<float> memory) {
    std::copy(values_.begin(), values_.end(), memory.begin());
    values_ = memory.first(kCount);
    own_ = {};
  }

  [[nodiscard]] std::span<float> operator[](std::size_t parameter) {
    return values_.subspan(offset_of(parameter), kShapes[parameter].count());
  }
  [[nodiscard]] std::span<float> all() { return values_; }
  [[nodiscard]] std::span<const float> all() const { return values_; }

 private:
  static constexpr std::size_t offset_of(std::size_t parameter) {
    std::size_t offset = 0;
    for (std::size_t i = 0; i < parameter; ++i) offset += kShapes[i].count();
    return offset;
  }

  std::vector<float> own_;
  std::span<float> values_;
};

// Weights from N(0, 0.01²) and biases 0, from the seed alone.
void initialise(ParameterBlock& parameters, std::uint64_t seed);

// parameters ← parameters − rate · gradients.
void descend(ParameterBlock& parameters, const ParameterBlock& gradients, float rate);

// Almost certainly differs if any bit of any parameter differs.
std::uint64_t hash_of(const ParameterBlock& parameters);

}  // namespace lenet
