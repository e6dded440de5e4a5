// Reduces by a function of the program, as kernels.hpp and fold.hpp do by the library's own.
#pragma once

#include <cstddef>
#include <exception>
#include <utility>

#include <rondo/user_reduction.hpp>

#include "reduce/fold.hpp"

namespace rondo::detail {

// What the program's function threw, so that it is not taken for an error of the library, which may
// have the same type.
struct ThrownByProgram : std::exception {
  explicit ThrownByProgram(std::exception_ptr by_function) : thrown(std::move(by_function)) {}
  std::exception_ptr thrown;
};

// Both throw ThrownByProgram.
//
// dst[i] ← a[i] op b[i] for `count` elements, and the same to `also` unless it is null. `dst` may
// be `a` or `b`; other overlaps are not allowed.
void combine_by(const UserReduction& reduction, std::byte* dst, std::byte* also, const std::byte* a,
                const std::byte* b, std::size_t count);

// outs[j][i] ← (ins[0][i] op ins[1][i]) op ins[2][i] ... for `count` elements and all j. An output
// may be one of the inputs; other overlaps are not allowed.
void fold_by(const UserReduction& reduction, const FoldOperands& operands, std::size_t count);

}  // namespace rondo::detail
