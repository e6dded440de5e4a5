// A fold in pieces, one element at a time. Inlined into its caller, so that the compiler may
// vectorise it for whatever instruction set the caller is compiled for.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "reduce/fold.hpp"
#include "reduce/functors.hpp"

namespace rondo::detail {

// The last step of a fold.
struct Unchanged {
  template <class A>
  constexpr A operator()(A value) const {
    return value;
  }
};
template <class A>
struct DivideBy {
  RealOf<A> divisor = 1;
  constexpr A operator()(A value) const { return value / divisor; }
};
// The first step, on each operand.
template <class A>
struct MultiplyBy {
  A factor = 1;
  constexpr A operator()(A value) const { return value * factor; }
};

// For elements `begin` to `end`. All operands of a piece are read before an output is written,
// since an output may be an operand.
template <class T, class First, class Op, class Last>
[[gnu::always_inline]] inline void scalar_fold(const FoldOperands& operands, std::size_t begin,
                                               std::size_t end, First first, Op op, Last last) {
  constexpr std::size_t kPieceElems = 512;
  std::array<AccumulatorOf<T>, kPieceElems> sums;
  std::array<T, kPieceElems> loaded;
  for (std::size_t at = begin; at < end; at += kPieceElems) {
    const std::size_t count = std::min(kPieceElems, end - at);
    for (std::size_t k = 0; k < operands.in_count; ++k) {
      // A copy, since a caller's buffer need not be aligned to the element.
      std::memcpy(loaded.data(), operands.ins[k] + at * sizeof(T), count * sizeof(T));
      for (std::size_t i = 0; i < count; ++i) {
        const auto operand = first(static_cast<AccumulatorOf<T>>(loaded[i]));
        sums[i] = k == 0 ? operand : op(sums[i], operand);
      }
    }
    for (std::size_t i = 0; i < count; ++i) loaded[i] = static_cast<T>(last(sums[i]));
    for (std::size_t j = 0; j < operands.out_count; ++j) {
      std::memcpy(operands.outs[j] + at * sizeof(T), loaded.data(), count * sizeof(T));
    }
  }
}

}  // namespace rondo::detail
