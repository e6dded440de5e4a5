#include "reduce/dispatch.hpp"
#include "reduce/functors.hpp"
#include "reduce/scalar_fold.hpp"
#include "reduce/scalar_loop.hpp"

namespace rondo::detail {
namespace {

template <class T>
struct ReferenceKernels {
  template <class Op>
  static void run(std::byte* dst, std::byte* also, const std::byte* a, const std::byte* b,
                  std::size_t count, const AverageStep& /*average*/) {
    scalar_loop<T>(dst, also, a, b, count, Op{});
  }
  static constexpr ReduceFunction sum = run<Sum<T>>;
  static constexpr ReduceFunction prod = run<Prod<T>>;
  static constexpr ReduceFunction min = run<Min<T>>;
  static constexpr ReduceFunction max = run<Max<T>>;
  static void sum_then_divide(std::byte* dst, std::byte* also, const std::byte* a,
                              const std::byte* b, std::size_t count, const AverageStep& average) {
    scalar_loop<T>(dst, also, a, b, count,
                   SumThenDivide<T>{static_cast<ArithmeticOf<T>>(average.divisor)});
  }
  static void sum_of_parts(std::byte* dst, std::byte* also, const std::byte* a, const std::byte* b,
                           std::size_t count, const AverageStep& average) {
    scalar_loop<T>(dst, also, a, b, count, SumOfParts<T>{average.scale_a, average.scale_b});
  }
  static void sum_of_parts_then_divide(std::byte* dst, std::byte* also, const std::byte* a,
                                       const std::byte* b, std::size_t count,
                                       const AverageStep& average) {
    scalar_loop<T>(dst, also, a, b, count,
                   SumOfPartsThenDivide<T>{{average.scale_a, average.scale_b}, average.divisor});
  }
  static constexpr ReduceKernel average() {
    if constexpr (kSumsAsParts<T>) return {sum_of_parts, sum_of_parts_then_divide};
    return {sum, sum_then_divide};
  }
};

template <class T, class Op>
void reference_fold_by(const FoldOperands& operands, std::size_t count) {
  scalar_fold<T>(operands, 0, count, Unchanged{}, Op{}, Unchanged{});
}

template <class T>
void reference_averages(const FoldOperands& operands, std::size_t count) {
  using Accumulator = AccumulatorOf<T>;
  const DivideBy<Accumulator> divide{static_cast<Accumulator>(operands.average.divisor)};
  if constexpr (kSumsAsParts<T>) {
    scalar_fold<T>(operands, 0, count, MultiplyBy<Accumulator>{operands.average.scale},
                   Sum<Accumulator>{}, divide);
  } else {
    scalar_fold<T>(operands, 0, count, Unchanged{}, Sum<Accumulator>{}, divide);
  }
}

}  // namespace

FoldFunction reference_fold(DataType type, ReduceOp op) {
  return with_type_and_op(type, op, [](auto type_tag, auto op_tag) -> FoldFunction {
    using T = typename decltype(type_tag)::Type;
    using Accumulator = AccumulatorOf<T>;
    constexpr ReduceOp kOp = decltype(op_tag)::kOp;
    if constexpr (kOp == ReduceOp::prod) return reference_fold_by<T, Prod<Accumulator>>;
    if constexpr (kOp == ReduceOp::min) return reference_fold_by<T, Min<Accumulator>>;
    if constexpr (kOp == ReduceOp::max) return reference_fold_by<T, Max<Accumulator>>;
    if constexpr (kOp == ReduceOp::avg) return reference_averages<T>;
    return reference_fold_by<T, Sum<Accumulator>>;
  });
}

ReduceKernel reference_kernel(DataType type, ReduceOp op) {
  return select_kernel<ReferenceKernels>(type, op);
}

}  // namespace rondo::detail
