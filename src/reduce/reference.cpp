#include "reduce/dispatch.hpp"
#include "reduce/functors.hpp"
#include "reduce/scalar_fold.hpp"
#include "reduce/scalar_loop.hpp"

namespace rondo::detail {
namespace {

template <class T, class Op>
void combine(std::byte* dst, std::byte* also, const std::byte* a, const std::byte* b,
             std::size_t count, const AverageStep& /*average*/) {
  scalar_loop<T>(dst, also, a, b, count, Op{});
}
template <class T>
void sum_then_divide(std::byte* dst, std::byte* also, const std::byte* a, const std::byte* b,
                     std::size_t count, const AverageStep& average) {
  scalar_loop<T>(dst, also, a, b, count,
                 SumThenDivide<T>{static_cast<RealOf<ArithmeticOf<T>>>(average.divisor)});
}
template <class T>
void sum_of_parts(std::byte* dst, std::byte* also, const std::byte* a, const std::byte* b,
                  std::size_t count, const AverageStep& average) {
  scalar_loop<T>(dst, also, a, b, count, SumOfParts<T>{average.scale_a, average.scale_b});
}
template <class T>
void sum_of_parts_then_divide(std::byte* dst, std::byte* also, const std::byte* a,
                              const std::byte* b, std::size_t count, const AverageStep& average) {
  scalar_loop<T>(dst, also, a, b, count,
                 SumOfPartsThenDivide<T>{{average.scale_a, average.scale_b}, average.divisor});
}

template <class T, ReduceOp op>
ReduceKernel kernel_of() {
  constexpr ReduceFunction combined = combine<T, OperationOf<T, op>>;
  if constexpr (op != ReduceOp::avg) {
    return {combined, combined};
  } else if constexpr (kSumsAsParts<T>) {
    return {sum_of_parts<T>, sum_of_parts_then_divide<T>};
  } else {
    return {combined, sum_then_divide<T>};
  }
}

template <class T, class Op>
void fold_by(const FoldOperands& operands, std::size_t count) {
  scalar_fold<T>(operands, 0, count, Unchanged{}, Op{}, Unchanged{});
}

template <class T>
void fold_averages(const FoldOperands& operands, std::size_t count) {
  using Accumulator = AccumulatorOf<T>;
  const DivideBy<Accumulator> divide{static_cast<RealOf<Accumulator>>(operands.average.divisor)};
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
    constexpr ReduceOp kOp = decltype(op_tag)::kOp;
    if constexpr (!kHasOwnCode<T, kOp>) {
      return nullptr;  // never asked for
    } else if constexpr (kOp == ReduceOp::avg) {
      return fold_averages<T>;
    } else {
      return fold_by<T, OperationOf<AccumulatorOf<T>, kOp>>;
    }
  });
}

ReduceKernel reference_kernel(DataType type, ReduceOp op) {
  return with_type_and_op(type, op, [](auto type_tag, auto op_tag) -> ReduceKernel {
    using T = typename decltype(type_tag)::Type;
    constexpr ReduceOp kOp = decltype(op_tag)::kOp;
    if constexpr (kHasOwnCode<T, kOp>) {
      return kernel_of<T, kOp>();
    } else {
      return {};  // never asked for
    }
  });
}

}  // namespace rondo::detail
