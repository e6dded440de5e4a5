// The only place where a DataType and a ReduceOp become a function.
#pragma once

#include <concepts>

#include <rondo/types.hpp>

#include "base/with_type.hpp"
#include "reduce/kernels.hpp"

namespace rondo::detail {

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
