// The operations on single elements, for host and device. The vector code must agree bit for bit.
#pragma once

#include <complex>
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

// The type of what numbers of type T are divided by, and multiplied with, to average them.
template <class T>
struct Real {
  using Type = T;
};
template <class T>
struct Real<std::complex<T>> {
  using Type = T;
};
template <class T>
using RealOf = typename Real<T>::Type;

// The type that a fold keeps intermediate results in: f32 for the 16-bit floats, which are so
// rounded once.
template <class T>
using AccumulatorOf = std::conditional_t<std::is_integral_v<T>, T, ArithmeticOf<T>>;

// From an element to the type that operations are carried out in, and back, rounding to
// nearest-even. A device has instructions for it; they differ from the host's code in the payload
// of a NaN alone.
template <class T>
RONDO_HOST_DEVICE constexpr ArithmeticOf<T> widen(T value) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<T, Float16>) {
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
    return result;
  }
#endif
  return static_cast<ArithmeticOf<T>>(value);
}

template <class T>
RONDO_HOST_DEVICE constexpr T narrow(ArithmeticOf<T> value) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<T, Float16>) {
    T result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
    return result;
  }
  if constexpr (std::is_same_v<T, BFloat16>) {
    std::uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0F), "f"(value));
    return T::from_bits(static_cast<std::uint16_t>(pair));
  }
#endif
  return static_cast<T>(value);
}

template <class T>
struct Sum {
  RONDO_HOST_DEVICE constexpr T operator()(T a, T b) const {
    return narrow<T>(static_cast<ArithmeticOf<T>>(widen(a) + widen(b)));
  }
};

template <class T>
struct Prod {
  RONDO_HOST_DEVICE constexpr T operator()(T a, T b) const {
    return narrow<T>(static_cast<ArithmeticOf<T>>(widen(a) * widen(b)));
  }
};

// The value in a type that C++ can compare: f32 for the 16-bit floats.
template <class T>
RONDO_HOST_DEVICE constexpr auto comparable(T value) {
  if constexpr (std::is_integral_v<T>) {
    return value;
  } else {
    return widen(value);
  }
}

// An operand that becomes the result. The 16-bit floats go through f32 as in every operation, which
// makes a signalling NaN quiet and leaves all other values as they are.
template <class T>
RONDO_HOST_DEVICE constexpr T picked(T value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return narrow<T>(widen(value));
  } else {
    return value;
  }
}

// NaN if either is; b when the two are equal.
template <class T>
struct Min {
  RONDO_HOST_DEVICE constexpr T operator()(T a, T b) const {
    const auto x = comparable(a);
    const bool first = x < comparable(b) || x != x;  // NOLINT(misc-redundant-expression): NaN
    return picked(first ? a : b);
  }
};

template <class T>
struct Max {
  RONDO_HOST_DEVICE constexpr T operator()(T a, T b) const {
    const auto x = comparable(a);
    const bool first = x > comparable(b) || x != x;  // NOLINT(misc-redundant-expression): NaN
    return picked(first ? a : b);
  }
};

template <class T>
struct BitAnd {
  constexpr T operator()(T a, T b) const { return static_cast<T>(a & b); }
};
template <class T>
struct BitOr {
  constexpr T operator()(T a, T b) const { return static_cast<T>(a | b); }
};
template <class T>
struct BitXor {
  constexpr T operator()(T a, T b) const { return static_cast<T>(a ^ b); }
};
template <class T>
struct LogicalAnd {
  constexpr T operator()(T a, T b) const { return static_cast<T>(a != 0 && b != 0); }
};
template <class T>
struct LogicalOr {
  constexpr T operator()(T a, T b) const { return static_cast<T>(a != 0 || b != 0); }
};
template <class T>
struct LogicalXor {
  constexpr T operator()(T a, T b) const { return static_cast<T>((a != 0) != (b != 0)); }
};

// The functor of a reduction; of an average, until its last step.
template <class T, ReduceOp op>
struct Operation {
  using Type = Sum<T>;
};
template <class T>
struct Operation<T, ReduceOp::prod> {
  using Type = Prod<T>;
};
template <class T>
struct Operation<T, ReduceOp::min> {
  using Type = Min<T>;
};
template <class T>
struct Operation<T, ReduceOp::max> {
  using Type = Max<T>;
};
template <class T>
struct Operation<T, ReduceOp::bit_and> {
  using Type = BitAnd<T>;
};
template <class T>
struct Operation<T, ReduceOp::bit_or> {
  using Type = BitOr<T>;
};
template <class T>
struct Operation<T, ReduceOp::bit_xor> {
  using Type = BitXor<T>;
};
template <class T>
struct Operation<T, ReduceOp::logical_and> {
  using Type = LogicalAnd<T>;
};
template <class T>
struct Operation<T, ReduceOp::logical_or> {
  using Type = LogicalOr<T>;
};
template <class T>
struct Operation<T, ReduceOp::logical_xor> {
  using Type = LogicalXor<T>;
};
template <class T, ReduceOp op>
using OperationOf = typename Operation<T, op>::Type;

// The last addition of an average.
template <class T>
struct SumThenDivide {
  RealOf<ArithmeticOf<T>> divisor = 1;

  RONDO_HOST_DEVICE constexpr T operator()(T a, T b) const {
    return narrow<T>((widen(a) + widen(b)) / divisor);
  }
};

// The additions of an average of 16-bit floats (average.hpp), each with one rounding.
template <class T>
struct SumOfParts {
  float scale_a = 1;
  float scale_b = 1;

  RONDO_HOST_DEVICE constexpr T operator()(T a, T b) const {
    return narrow<T>(widen(a) * scale_a + widen(b) * scale_b);
  }
};
template <class T>
struct SumOfPartsThenDivide {
  SumOfParts<T> sum;
  float divisor = 1;

  RONDO_HOST_DEVICE constexpr T operator()(T a, T b) const {
    return narrow<T>((widen(a) * sum.scale_a + widen(b) * sum.scale_b) / divisor);
  }
};

}  // namespace rondo::detail
