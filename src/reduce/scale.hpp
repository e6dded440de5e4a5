// Scaling, and conversion between f32 and the 16-bit floats, before and after a reduction.
#pragma once

#include <cstddef>

#include <rondo/types.hpp>

namespace rondo::detail {

// to[i] ← factor · from[i], computed in f32 (f64 for f64) and rounded once to the type of `to`. The
// types are floating and equal, or one is f32 and the other f16 or bf16. The buffers are identical
// or do not overlap, and need not be aligned. With equal types and a factor of 1, elements are only
// copied.
void scale(void* to, DataType to_type, const void* from, DataType from_type, std::size_t count,
           double factor);

}  // namespace rondo::detail
