// Reduces any number of operands at once, in their order, into any number of outputs: what `direct`
// and `one_shot` do with the buffers of all ranks, where the ring reduces two operands at each step
// (reduce/kernels.hpp).
#pragma once

#include <cstddef>

#include <rondo/types.hpp>

#include "reduce/average.hpp"

namespace rondo::detail {

struct FoldOperands {
  std::byte* const* outs = nullptr;
  std::size_t out_count = 0;
  const std::byte* const* ins = nullptr;
  std::size_t in_count = 0;     // at least 1
  AverageFactors average = {};  // of averages alone
};

// outs[j][i] ← ins[0][i] op ins[1][i] op ... for `count` elements and all j; an average multiplies
// each operand, where the type sums as parts, and divides the sum, by what `average` says. The
// 16-bit floats are computed in f32 and rounded once, at the end. An output may be one of the
// inputs; other overlaps are not allowed. The buffers need not be aligned to the element type.
using FoldFunction = void (*)(const FoldOperands& operands, std::size_t count);

// Vector code for this processor, where the pair has some. It must be supported (rondo::supports).
FoldFunction vector_fold(DataType type, ReduceOp op);

// Without vectors: what the vector code is tested against.
FoldFunction reference_fold(DataType type, ReduceOp op);

}  // namespace rondo::detail
