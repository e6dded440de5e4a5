// How averages are computed. Those of 16-bit floats would overflow as sums: four times 40000 is
// more than an f16 holds. So what ranks pass on is the sum divided by a power of two that is not
// below the number of ranks: a part of the average. Such a division is exact, except for elements
// that are almost zero. Where several operands are added at once, the sum is kept in f32, and the
// operands are divided in the same way, since the sum of several bf16 may be more than an f32
// holds.
//
// Example: four ranks with 40000 in f16, by ring. The first sends 40000, its input. The second adds
// 40000/4 + 40000/4 = 20000, the third 20000 + 40000/4 = 30000, and the last 30000 + 40000/4 =
// 40000, which is divided by 4/4.
//
// All other types are summed as they are, and the sum is divided by the number of ranks.
#pragma once

#include <concepts>

#include <rondo/types.hpp>

#include "base/portable.hpp"

namespace rondo::detail {

template <class T>
inline constexpr bool kSumsAsParts = std::same_as<T, Float16> || std::same_as<T, BFloat16>;
constexpr bool sums_as_parts(DataType type) {
  return type == DataType::f16 || type == DataType::bf16;
}

// What an operand that is an input is multiplied by, and what the sum is divided by in the end.
struct AverageFactors {
  float scale = 1;
  float divisor = 1;
};

RONDO_HOST_DEVICE constexpr AverageFactors average_of(bool as_parts, int ranks) {
  AverageFactors average{1, static_cast<float>(ranks)};
  if (!as_parts) return average;
  for (int power = 1; power < ranks; power *= 2) average.scale /= 2;
  average.divisor *= average.scale;
  return average;
}
constexpr AverageFactors average_of(DataType type, int ranks) {
  return average_of(sums_as_parts(type), ranks);
}

}  // namespace rondo::detail
