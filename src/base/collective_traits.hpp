// Which collectives have a root, and which reduce.
#pragma once

#include <rondo/types.hpp>

namespace rondo::detail {

constexpr bool has_root(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce;
}

constexpr bool reduces(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
         collective == Collective::reduce;
}

}  // namespace rondo::detail
