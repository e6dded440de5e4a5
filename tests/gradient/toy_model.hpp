// Gradients whose sums are exact and different in every element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

#include "bench/exact_values.hpp"

namespace rondo::test {

// Whole and small, so that the sums over four ranks, and quarters of them, are exact in every type,
// bf16 too.
constexpr double gradient_value(int rank, std::size_t parameter, std::size_t element) {
  return static_cast<double>(rank + 1) *
         static_cast<double>((parameter * 37 + element * 7) % 23 + 1);
}

// (1 + 2 + ... + ranks) times what rank 0 has.
constexpr double gradient_sum(int ranks, std::size_t parameter, std::size_t element) {
  return gradient_value(0, parameter, element) * static_cast<double>(ranks * (ranks + 1)) / 2;
}

inline const std::vector<std::size_t> kToySizes = {30, 1, 700, 50, 20'000, 128, 0, 1280, 10};

// One rank's gradients of type T, each in memory of its own.
template <class T>
class ToyModel {
 public:
  explicit ToyModel(const std::vector<std::size_t>& sizes = kToySizes) {
    for (const std::size_t size : sizes) {
      // Unused elements behind each gradient, so that no two are adjacent in memory by accident.
      gradients_.emplace_back(size + 16);
      counts_.push_back(size);
    }
  }

  [[nodiscard]] std::size_t size() const { return counts_.size(); }
  [[nodiscard]] std::span<T> operator[](std::size_t i) {
    return std::span(gradients_[i]).first(counts_[i]);
  }
  [[nodiscard]] std::vector<Parameter> parameters() {
    std::vector<Parameter> result;
    for (std::size_t i = 0; i < size(); ++i) {
      result.push_back(Parameter::gradient_only(label(i), (*this)[i]));
    }
    return result;
  }
  static std::string label(std::size_t i) { return std::string("p").append(std::to_string(i)); }

  void compute(int rank, std::size_t i, double factor = 1) {
    const std::span<T> gradient = (*this)[i];
    for (std::size_t e = 0; e < gradient.size(); ++e) {
      gradient[e] = exact::from_double<T>(gradient_value(rank, i, e) * factor);
    }
  }

 private:
  std::vector<std::vector<T>> gradients_;
  std::vector<std::size_t> counts_;
};

// Every element of parameter `i` is gradient_sum() times `factor`.
template <class T>
void expect_sums(std::span<const T> gradient, int ranks, std::size_t i, double factor = 1) {
  std::size_t wrong = 0;
  for (std::size_t e = 0; e < gradient.size(); ++e) {
    if (!(gradient[e] == exact::from_double<T>(gradient_sum(ranks, i, e) * factor))) ++wrong;
  }
  EXPECT_EQ(wrong, 0U) << "parameter " << i << " of " << gradient.size() << " elements";
}

}  // namespace rondo::test
