// dst ← a op b, for every element type and operation; and copies.
#pragma once

#include <cstddef>

#include <rondo/types.hpp>

#include "reduce/average.hpp"

namespace rondo::detail {

// One addition of an average (average.hpp): what the operands are multiplied by, where the type
// sums as parts, and what the sum is divided by in the last one.
struct AverageStep {
  float scale_a = 1;
  float scale_b = 1;
  float divisor = 1;
};

// dst[i] ← finish(a[i] op b[i]) for `count` elements, and the same to `also` unless it is null.
// `dst` may be `a` or `b`; other overlaps are not allowed. `average` is ignored by all that is no
// average. The buffers need not be aligned to the element type.
using ReduceFunction = void (*)(std::byte* dst, std::byte* also, const std::byte* a,
                                const std::byte* b, std::size_t count, const AverageStep& average);

struct ReduceKernel {
  ReduceFunction combine = nullptr;  // a op b
  ReduceFunction finish = nullptr;   // the same for the last operand; averages divide
};

// Vector code for this processor, where the pair has some. It must be supported (rondo::supports).
ReduceKernel vector_kernel(DataType type, ReduceOp op);

// Copies between buffers that do not overlap.
struct CopyKernel {
  using Function = void (*)(std::byte* dst, const std::byte* src, std::size_t bytes);
  Function cached = nullptr;
  // Non-temporal stores, which bypass the caches: for data that is larger than the caches and not
  // read again soon. As with all stores, a thread that synchronises with this one afterwards sees
  // the data.
  Function non_temporal = nullptr;
};
CopyKernel vector_copy();

// One element at a time: what the vector code is tested against.
ReduceKernel reference_kernel(DataType type, ReduceOp op);

}  // namespace rondo::detail
