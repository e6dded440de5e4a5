// The only place where a DataType and a ReduceOp become C++ types.
#pragma once

#include <concepts>

#include <rondo/types.hpp>

#include "reduce/kernels.hpp"

namespace rondo::detail {

template <class T>
struct TypeTag {
  using Type = T;
};

template <class Visitor>
auto with_type(DataType type, Visitor&& visit) {
  switch (type) {
    case DataType::f64:
      return visit(TypeTag<double>{});
    case DataType::f16:
      return visit(TypeTag<Float16>{});
    case DataType::bf16:
      return visit(TypeTag<BFloat16>{});
    case DataType::i8:
      return visit(TypeTag<std::int8_t>{});
    case DataType::u8:
      return visit(TypeTag<std::uint8_t>{});
    case DataType::i32:
      return visit(TypeTag<std::int32_t>{});
    case DataType::u32:
      return visit(TypeTag<std::uint32_t>{});
    case DataType::i64:
      return visit(TypeTag<std::int64_t>{});
    case DataType::u64:
      return visit(TypeTag<std::uint64_t>{});
    case DataType::f32:
      break;
  }
  return visit(TypeTag<float>{});
}

// Kernels<T> provides sum, prod, min and max, and sum_then_divide for floating-point T.
template <template <class> class Kernels>
ReduceKernel select_kernel(DataType type, ReduceOp op) {
  return with_type(type, [op](auto tag) -> ReduceKernel {
    using T = typename decltype(tag)::Type;
    using K = Kernels<T>;
    switch (op) {
      case ReduceOp::prod:
        return {K::prod, K::prod};
      case ReduceOp::min:
        return {K::min, K::min};
      case ReduceOp::max:
        return {K::max, K::max};
      case ReduceOp::avg:
        if constexpr (!std::integral<T>) return {K::sum, K::sum_then_divide};
        break;
      case ReduceOp::sum:
        break;
    }
    return {K::sum, K::sum};
  });
}

}  // namespace rondo::detail
