// The operations on single elements, for host and device. The vector code must agree bit for bit.
#pragma once

#include <concepts>
#include <type_traits>

#include <rondo/types.hpp>

#include "base/portable.hpp"

namespace rondo::detail {

// The type that one operation is carried out in: f32 for the 16-bit floats; unsigned for integers,
// where wrapping is defined.
template <class T>
struct Arithmetic {
  using Type = T;
};
template <>
struct Arithmetic<Float16> {
  using Type = float;
};
template <>
struct Arithmetic<BFloat16> {
  using Type = float;
};
template <std::integral T>
struct Arithmetic<T> {
  using Type = std::make_unsigned_t<std::conditional_t<sizeof(T) < sizeof(int), int, T>>;
};
template <class T>
using ArithmeticOf = typename Arithmetic<T>::Type;

template <class T>
struct Sum {
  RONDO_HOST_DEVICE constexpr T operator()(T a, T b) const {
    return static_cast<T>(static_cast<ArithmeticOf<T>>(a) + static_cast<ArithmeticOf<T>>(b));
  }
};

template <class T>
struct Prod {
  RONDO_HOST_DEVICE constexpr T operator()(T a, T b) const {
    return static_cast<T>(static_cast<ArithmeticOf<T>>(a) * static_cast<ArithmeticOf<T>>(b));
  }
};

// Comparable as the language compares them: the 16-bit floats as f32.
template <class T>
RONDO_HOST_DEVICE constexpr auto comparable(T value) {
  if constexpr (std::is_integral_v<T>) {
    return value;
  } else {
    return static_cast<ArithmeticOf<T>>(value);
  }
}

// NaN if either is; b when the two are equal.
template <class T>
struct Min {
  RONDO_HOST_DEVICE constexpr T operator()(T a, T b) const {
    const auto x = comparable(a);
    return x < comparable(b) || x != x ? a : b;  // NOLINT(misc-redundant-expression): NaN
  }
};

template <class T>
struct Max {
  RONDO_HOST_DEVICE constexpr T operator()(T a, T b) const {
    const auto x = comparable(a);
    return x > comparable(b) || x != x ? a : b;  // NOLINT(misc-redundant-expression): NaN
  }
};

// The last addition of an average: sum and division in one rounding for the 16-bit floats.
template <class T>
struct SumThenDivide {
  ArithmeticOf<T> divisor;

  RONDO_HOST_DEVICE constexpr T operator()(T a, T b) const {
    return static_cast<T>((static_cast<ArithmeticOf<T>>(a) + static_cast<ArithmeticOf<T>>(b)) /
                          divisor);
  }
};

}  // namespace rondo::detail
