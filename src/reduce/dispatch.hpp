// The only place where a DataType and a ReduceOp become a function.
#pragma once

#include <concepts>

#include <rondo/types.hpp>

#include "base/with_type.hpp"
#include "reduce/kernels.hpp"

namespace rondo::detail {

template <ReduceOp op>
struct OpTag {
  static constexpr ReduceOp kOp = op;
};

// Calls `visit(OpTag<op>{})`; T and op must be supported together.
template <class T, class Visitor>
auto with_op(ReduceOp op, Visitor&& visit) {
  switch (op) {
    case ReduceOp::prod:
      return visit(OpTag<ReduceOp::prod>{});
    case ReduceOp::min:
      return visit(OpTag<ReduceOp::min>{});
    case ReduceOp::max:
      return visit(OpTag<ReduceOp::max>{});
    case ReduceOp::avg:
      if constexpr (!std::integral<T>) return visit(OpTag<ReduceOp::avg>{});
      break;
    case ReduceOp::sum:
      break;
  }
  return visit(OpTag<ReduceOp::sum>{});
}

// Calls `visit(TypeTag<T>{}, OpTag<op>{})` for the pair, which must be supported.
template <class Visitor>
auto with_type_and_op(DataType type, ReduceOp op, Visitor&& visit) {
  return with_type(type, [&](auto type_tag) {
    return with_op<typename decltype(type_tag)::Type>(
        op, [&](auto op_tag) { return visit(type_tag, op_tag); });
  });
}

// Kernels<T> provides sum, prod, min and max, and average() for floating-point T.
template <template <class> class Kernels>
ReduceKernel select_kernel(DataType type, ReduceOp op) {
  return with_type_and_op(type, op, [](auto type_tag, auto op_tag) -> ReduceKernel {
    using K = Kernels<typename decltype(type_tag)::Type>;
    constexpr ReduceOp kOp = decltype(op_tag)::kOp;
    if constexpr (kOp == ReduceOp::prod) return {K::prod, K::prod};
    if constexpr (kOp == ReduceOp::min) return {K::min, K::min};
    if constexpr (kOp == ReduceOp::max) return {K::max, K::max};
    if constexpr (kOp == ReduceOp::avg) return K::average();
    return {K::sum, K::sum};
  });
}

}  // namespace rondo::detail
