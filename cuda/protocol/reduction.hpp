// One element type and operation, for kernels.
#pragma once

#include <type_traits>

#include <rondo/types.hpp>

#include "reduce/functors.hpp"

namespace rondo::detail::gpu {

template <class T, ReduceOp op>
struct OperationOf {
  using Type = Sum<T>;  // of an average too, until its last step
};
template <class T>
struct OperationOf<T, ReduceOp::prod> {
  using Type = Prod<T>;
};
template <class T>
struct OperationOf<T, ReduceOp::min> {
  using Type = Min<T>;
};
template <class T>
struct OperationOf<T, ReduceOp::max> {
  using Type = Max<T>;
};

template <class T, ReduceOp op>
struct Reduction {
  using Element = T;
  using Combine = typename OperationOf<T, op>::Type;

  // Of many operands at once: accumulator() of each, combine() them in their order, then result() of `ranks` operands.
  using Accumulator = AccumulatorOf<T>;
  RONDO_HOST_DEVICE static Accumulator accumulator(T operand) {
    if constexpr (std::is_integral_v<T>) {
      return operand;
    } else {
      return widen(operand);
    }
  }
  RONDO_HOST_DEVICE static Accumulator combine(Accumulator a, Accumulator b) {
    return typename OperationOf<Accumulator, op>::Type{}(a, b);
  }
  RONDO_HOST_DEVICE static T result(Accumulator sum, int ranks) {
    if constexpr (op == ReduceOp::avg) sum /= static_cast<Accumulator>(ranks);
    if constexpr (std::is_integral_v<T>) {
      return sum;
    } else {
      return narrow<T>(sum);
    }
  }

  // Calls `visit` with the operation that combines two elements; in the last step of an average it also divides.
  template <class Visit>
  RONDO_HOST_DEVICE static void with_operation(bool finish, int ranks, Visit&& visit) {
    if constexpr (op == ReduceOp::avg) {
      if (finish) {
        visit(SumThenDivide<T>{static_cast<ArithmeticOf<T>>(ranks)});
        return;
      }
    }
    visit(Combine{});
  }
};

}  // namespace rondo::detail::gpu
