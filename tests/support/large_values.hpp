// 16-bit floats whose sums are more than the type holds.
#pragma once

#include <cstddef>
#include <type_traits>

#include <rondo/types.hpp>

namespace rondo::test {

// Near the largest number of the type, and different on each rank. All sums of them, divided by a
// power of two that is not below the number of ranks, are numbers of the type, and so is their
// average: that of ranks 0 to n - 1 is the value of `rank` (n - 1) / 2. For up to 8 ranks.
template <class T>
T large_value(std::size_t i, double rank) {
  if constexpr (std::is_same_v<T, Float16>) {
    return T(static_cast<float>(32768 + 256 * (static_cast<double>(i % 64) + 4 * rank)));
  } else {
    return T(static_cast<float>(0x1p123 * (16 + static_cast<double>(i % 2) + 2 * rank)));
  }
}

}  // namespace rondo::test
