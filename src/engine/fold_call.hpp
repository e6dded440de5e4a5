// Folds the elements of a call: by its own reduction, or by one of the library's.
#pragma once

#include <cstddef>

#include <rondo/call.hpp>

#include "reduce/by_user.hpp"
#include "reduce/fold.hpp"

namespace rondo::detail {

// `op`: in place of that of the call, which an average may have cut into parts.
inline void fold_call(const Call& call, ReduceOp op, const FoldOperands& operands,
                      std::size_t count) {
  if (call.reduction != nullptr) {
    fold_by(*call.reduction, operands, count);
  } else {
    vector_fold(call.type, op)(operands, count);
  }
}

}  // namespace rondo::detail
