// Inputs whose reduction is known exactly for every element, in every type, whatever the order of
// the operations: sums stay within the integers that the type holds, products are a small integer
// times powers of two (of complex numbers, times 1, i, -1 or -i), integers wrap. Neighbouring
// elements differ, so that a slice or a chunk in the wrong place is a wrong answer.
#pragma once

#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <rondo/types.hpp>

namespace rondo::exact {

inline constexpr int kMostRanks = 16;

template <class T>
inline constexpr bool kIsComplex = false;
template <class T>
inline constexpr bool kIsComplex<std::complex<T>> = true;

constexpr std::uint64_t mix(std::uint64_t value) {  // the finaliser of splitmix64
  value += 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31U);
}

// Integers up to this are exact in T.
template <class T>
constexpr std::uint64_t exact_limit() {
  if constexpr (std::is_same_v<T, Float16>) return 1U << 11U;
  if constexpr (std::is_same_v<T, BFloat16>) return 1U << 8U;
  if constexpr (std::is_same_v<T, float>) return 1U << 24U;
  return std::uint64_t{1} << 53U;
}

template <class T>
constexpr T from_double(double value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return T(static_cast<float>(value));
  } else if constexpr (kIsComplex<T>) {
    return {static_cast<typename T::value_type>(value), 0};
  } else {
    return static_cast<T>(value);
  }
}

// What rank `rank` of `ranks` contributes to element `index`, as a double.
template <class T>
double float_input(ReduceOp op, int rank, int ranks, std::uint64_t index) {
  const std::uint64_t bits = mix(index * kMostRanks + static_cast<std::uint64_t>(rank));
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      return static_cast<double>(bits % (exact_limit<T>() / static_cast<std::uint64_t>(ranks)));
    case ReduceOp::prod:
      if (rank == 0) return static_cast<double>(1 + bits % 100);
      if (bits % 2 == 0) return 1;
      return rank % 2 == 0 ? 0.5 : 2;
    case ReduceOp::min:
    case ReduceOp::max:
      return static_cast<double>(bits % (2 * exact_limit<T>())) -
             static_cast<double>(exact_limit<T>());
    default:
      return 0;  // which no floating-point type supports
  }
}

template <class T>
T complex_input(ReduceOp op, int rank, int ranks, std::uint64_t index) {
  using Part = typename T::value_type;
  const auto part = [&](std::uint64_t which) {
    return from_double<Part>(float_input<Part>(op, rank, ranks, 2 * index + which));
  };
  if (op != ReduceOp::prod || rank == 0) return {part(0), part(1)};
  const T units[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
  return units[mix(index * kMostRanks + static_cast<std::uint64_t>(rank)) % 4];
}

// True about as often as not after the reduction, where it is an `and` or an `or`.
inline bool boolean_input(ReduceOp op, int rank, int ranks, std::uint64_t index) {
  const std::uint64_t bits = mix(index * kMostRanks + static_cast<std::uint64_t>(rank));
  if (op == ReduceOp::bit_xor || op == ReduceOp::logical_xor) return bits % 2 == 0;
  const bool is_and = op == ReduceOp::prod || op == ReduceOp::min || op == ReduceOp::bit_and ||
                      op == ReduceOp::logical_and;
  return (bits % (static_cast<std::uint64_t>(ranks) + 1) == 0) != is_and;
}

template <class T>
T input(ReduceOp op, int rank, int ranks, std::uint64_t index) {
  if constexpr (kIsComplex<T>) {
    return complex_input<T>(op, rank, ranks, index);
  } else if constexpr (std::is_same_v<T, bool>) {
    return boolean_input(op, rank, ranks, index);
  } else if constexpr (std::is_integral_v<T>) {
    if (op >= ReduceOp::logical_and) {
      return boolean_input(op, rank, ranks, index) ? static_cast<T>(index | 1U) : T{0};
    }
    const std::uint64_t bits = mix(index * kMostRanks + static_cast<std::uint64_t>(rank)) >> 7U;
    // Only odd factors: even ones would fill the product's low bits with zeros.
    return static_cast<T>(op == ReduceOp::prod ? bits | 1U : bits);
  } else {
    return from_double<T>(float_input<T>(op, rank, ranks, index));
  }
}

template <class T>
double combine(ReduceOp op, double a, double b) {
  switch (op) {
    case ReduceOp::prod:
      return a * b;
    case ReduceOp::min:
      return a < b ? a : b;
    case ReduceOp::max:
      return a > b ? a : b;
    default:
      return a + b;
  }
}

template <class T>
T combine_integers(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::prod:
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    case ReduceOp::min:
      return a < b ? a : b;
    case ReduceOp::max:
      return a > b ? a : b;
    case ReduceOp::bit_and:
      return static_cast<T>(a & b);
    case ReduceOp::bit_or:
      return static_cast<T>(a | b);
    case ReduceOp::bit_xor:
      return static_cast<T>(a ^ b);
    case ReduceOp::logical_and:
      return static_cast<T>(a && b);
    case ReduceOp::logical_or:
      return static_cast<T>(a || b);
    case ReduceOp::logical_xor:
      return static_cast<T>(!a != !b);
    default:
      return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
}

// The exact reduction of element `index` over all ranks.
template <class T>
T result(ReduceOp op, int ranks, std::uint64_t index) {
  if constexpr (kIsComplex<T>) {
    T value = input<T>(op, 0, ranks, index);
    for (int rank = 1; rank < ranks; ++rank) {
      const T operand = input<T>(op, rank, ranks, index);
      value = op == ReduceOp::prod ? value * operand : value + operand;
    }
    if (op != ReduceOp::avg) return value;
    return value / static_cast<typename T::value_type>(ranks);
  } else if constexpr (std::is_integral_v<T>) {
    T value = input<T>(op, 0, ranks, index);
    for (int rank = 1; rank < ranks; ++rank) {
      value = combine_integers(op, value, input<T>(op, rank, ranks, index));
    }
    return value;
  } else {
    // Each input is rounded to T first, as the ranks hold it.
    const auto held = [&](int rank) {
      if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
        return static_cast<double>(input<T>(op, rank, ranks, index));
      } else {
        return static_cast<double>(static_cast<float>(input<T>(op, rank, ranks, index)));
      }
    };
    double value = held(0);
    for (int rank = 1; rank < ranks; ++rank) value = combine<T>(op, value, held(rank));
    if (op != ReduceOp::avg) return from_double<T>(value);
    // Divided in the type in which the library divides.
    if constexpr (std::is_same_v<T, double>) return value / ranks;
    return from_double<T>(
        static_cast<double>(static_cast<float>(value) / static_cast<float>(ranks)));
  }
}

}  // namespace rondo::exact
