#include "reduce/scale.hpp"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/types.hpp>

namespace rondo::detail {
namespace {

// Numbers of all magnitudes, both signs, ties of the narrow types, infinity and NaN.
std::vector<float> interesting() {
  std::vector<float> values = {0,
                               -0.0F,
                               1,
                               65519,
                               65520,
                               1e30F,
                               3.0e-8F,
                               2.9e-8F,
                               6.1e-5F,
                               std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::quiet_NaN()};
  for (int i = 0; i < 3000; ++i) {
    const float magnitude = std::ldexp(1.0F + static_cast<float>(i % 1031) / 1024, i % 40 - 26);
    values.push_back(i % 2 == 0 ? magnitude : -magnitude);
  }
  return values;
}

template <class T>
bool same_bits(T a, T b) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    return a == b || (std::isnan(a) && std::isnan(b));
  } else {
    return a.bits == b.bits ||
           (std::isnan(static_cast<float>(a)) && std::isnan(static_cast<float>(b)));
  }
}

template <class To, class From>
void check(float factor) {
  using Wide = std::conditional_t<std::is_same_v<To, double>, double, float>;
  std::vector<From> from;
  for (const float value : interesting()) from.push_back(static_cast<From>(value));
  // From every start, so that the remainder after the last full SIMD vector has every length.
  for (std::size_t start = 0; start < 40; ++start) {
    std::vector<To> to(from.size());
    scale(to.data() + start, kDataTypeOf<To>, from.data() + start, kDataTypeOf<From>,
          from.size() - start, static_cast<double>(factor));
    for (std::size_t i = start; i < from.size(); ++i) {
      const To expected = static_cast<To>(static_cast<Wide>(from[i]) * static_cast<Wide>(factor));
      ASSERT_TRUE(same_bits(to[i], expected)) << i << " from " << start;
    }
  }
}

template <class To, class From>
void check_factors() {
  for (const float factor : {1.0F, 0.25F, 1.0F / 3}) check<To, From>(factor);
}

TEST(Convert, RoundsAsTheScalarTypesDo) {
  check_factors<float, float>();
  check_factors<double, double>();
  check_factors<Float16, Float16>();
  check_factors<BFloat16, BFloat16>();
  check_factors<BFloat16, float>();
  check_factors<Float16, float>();
  check_factors<float, BFloat16>();
  check_factors<float, Float16>();
}

// Floats of 16 bits may be parts of a structure that begins at any byte.
template <class T>
void check_at_an_odd_address() {
  const std::vector<float> values = interesting();
  const std::size_t bytes = values.size() * sizeof(T);
  std::vector<std::byte> from(bytes + 1);
  std::vector<std::byte> to(bytes + 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T value = static_cast<T>(values[i]);
    std::memcpy(from.data() + 1 + i * sizeof(T), &value, sizeof(T));
  }
  scale(to.data() + 1, kDataTypeOf<T>, from.data() + 1, kDataTypeOf<T>, values.size(), 0.25);
  std::vector<float> wide(values.size());
  scale(wide.data(), DataType::f32, from.data() + 1, kDataTypeOf<T>, values.size(), 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    T scaled;
    std::memcpy(&scaled, to.data() + 1 + i * sizeof(T), sizeof(T));
    const T value = static_cast<T>(values[i]);
    ASSERT_TRUE(same_bits(scaled, static_cast<T>(static_cast<float>(value) * 0.25F))) << i;
    ASSERT_TRUE(same_bits(wide[i], static_cast<float>(value))) << i;
  }
}

TEST(Convert, WorksAtAnOddAddress) {
  check_at_an_odd_address<Float16>();
  check_at_an_odd_address<BFloat16>();
}

TEST(Convert, WorksInPlace) {
  std::vector<float> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  scale(values.data(), DataType::f32, values.data(), DataType::f32, values.size(), 0.5);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], static_cast<float>(i) / 2);
}

}  // namespace
}  // namespace rondo::detail
