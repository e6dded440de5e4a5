// One element type and operation, for kernels.
#pragma once

#include <type_traits>

#include <rondo/types.hpp>

#include "reduce/average.hpp"
#include "reduce/functors.hpp"
#include "schedule/step.hpp"

namespace rondo::detail::gpu {

template <class T, ReduceOp op>
struct Reduction {
  using Element = T;
  using Combine = OperationOf<T, op>;

  // Averages of 16-bit floats are summed as parts (reduce/average.hpp).
  static constexpr bool kAsParts = op == ReduceOp::avg && kSumsAsParts<T>;
  RONDO_HOST_DEVICE static AverageFactors average(int ranks) { return average_of(kAsParts, ranks); }

  // To reduce many operands at once, call accumulator() for each, combine() them in their order,
  // and take the result() of `average.divisor` operands.
  using Accumulator = AccumulatorOf<T>;
  RONDO_HOST_DEVICE static Accumulator accumulator(T operand, const AverageFactors& average) {
    if constexpr (std::is_integral_v<T>) {
      return operand;
    } else if constexpr (kAsParts) {
      return widen(operand) * average.scale;
    } else {
      return widen(operand);
    }
  }
  RONDO_HOST_DEVICE static Accumulator combine(Accumulator a, Accumulator b) {
    return OperationOf<Accumulator, op>{}(a, b);
  }
  RONDO_HOST_DEVICE static T result(Accumulator sum, const AverageFactors& average) {
    if constexpr (op == ReduceOp::avg) sum /= static_cast<Accumulator>(average.divisor);
    if constexpr (std::is_integral_v<T>) {
      return sum;
    } else {
      return narrow<T>(sum);
    }
  }

  // Calls `visit` with the operation of a step, on what was received and the rank's own elements;
  // in the last step of an average it also divides.
  template <class Visit>
  RONDO_HOST_DEVICE static void with_operation(const Step& step, int ranks, Visit&& visit) {
    if constexpr (kAsParts) {
      const AverageFactors whole = average(ranks);
      const SumOfParts<T> sum{step.has(kReceivedIsInput) ? whole.scale : 1,
                              step.has(kMineIsOutput) ? 1 : whole.scale};
      if (step.has(kFinish)) {
        visit(SumOfPartsThenDivide<T>{sum, whole.divisor});
      } else {
        visit(sum);
      }
      return;
    } else if constexpr (op == ReduceOp::avg) {
      if (step.has(kFinish)) {
        visit(SumThenDivide<T>{static_cast<ArithmeticOf<T>>(ranks)});
        return;
      }
    }
    visit(Combine{});
  }
};

}  // namespace rondo::detail::gpu
