// A model's parameters: arrays in one block of memory, in forward order, with plain layouts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lenet {

struct ParameterShape {
  using Dims = std::array<std::int64_t, 4>;

  std::string name;
  Dims dims;  // unused dimensions are 1
  // At the start the values are from N(mean, deviation²).
  float deviation = 0;
  float mean = 0;
  // Where this is a part of a parameter that several ranks have parts of: the whole's dimensions,
  // and where the part begins.
  std::optional<Dims> whole = std::nullopt;
  Dims first = {};

  [[nodiscard]] std::size_t count() const { return count_of(dims); }
  static std::size_t count_of(const Dims& dims) {
    return static_cast<std::size_t>(dims[0] * dims[1] * dims[2] * dims[3]);
  }
};

// Of each element of the whole parameter, in order: whether it is in the part.
std::vector<bool> elements_of_part(const ParameterShape& shape);

// Of one model, in forward order.
class ParameterShapes {
 public:
  explicit ParameterShapes(std::vector<ParameterShape> shapes);

  [[nodiscard]] std::size_t size() const { return shapes_.size(); }
  [[nodiscard]] const ParameterShape& operator[](std::size_t parameter) const {
    return shapes_[parameter];
  }
  [[nodiscard]] std::size_t offset(std::size_t parameter) const { return offsets_[parameter]; }
  // Elements of all parameters.
  [[nodiscard]] std::size_t count() const { return offsets_.back(); }

 private:
  std::vector<ParameterShape> shapes_;
  std::vector<std::size_t> offsets_;  // one more than shapes
};

// Parameters, or gradients of them: one value for each.
class ParameterBlock {
 public:
  explicit ParameterBlock(std::shared_ptr<const ParameterShapes> shapes)
      : shapes_(std::move(shapes)), own_(shapes_->count()), values_(own_) {}
  // Copies have memory of their own.
  ParameterBlock(const ParameterBlock& other)
      : shapes_(other.shapes_), own_(other.values_.begin(), other.values_.end()), values_(own_) {}
  // Between blocks of one model.
  ParameterBlock& operator=(const ParameterBlock& other);
  ~ParameterBlock() = default;

  // From now on the values are in `memory`, which has room for all of them and outlives the block.
  void move_to(std::span<float> memory);

  [[nodiscard]] const std::shared_ptr<const ParameterShapes>& shapes() const { return shapes_; }
  [[nodiscard]] std::size_t size() const { return shapes_->size(); }
  [[nodiscard]] std::span<float> operator[](std::size_t parameter) {
    return values_.subspan(shapes_->offset(parameter), (*shapes_)[parameter].count());
  }
  [[nodiscard]] std::span<float> all() { return values_; }
  [[nodiscard]] std::span<const float> all() const { return values_; }

 private:
  std::shared_ptr<const ParameterShapes> shapes_;
  std::vector<float> own_;
  std::span<float> values_;
};

// As the shapes say, from the seed alone: a part has the values that it has in the whole.
void initialise(ParameterBlock& parameters, std::uint64_t seed);

// parameters ← parameters − rate · gradients.
void descend(ParameterBlock& parameters, const ParameterBlock& gradients, float rate);

// Almost certainly differs if any bit of any parameter differs.
std::uint64_t hash_of(const ParameterBlock& parameters);

}  // namespace lenet
