// What is true of each kind of call.
#pragma once

#include <rondo/types.hpp>

namespace rondo::detail {

constexpr bool has_root(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce ||
         collective == Collective::gather || collective == Collective::scatter;
}

// Between two ranks, whatever the others do meanwhile.
constexpr bool is_message(Collective collective) {
  return collective == Collective::send || collective == Collective::recv ||
         collective == Collective::sendrecv;
}

// What `pairwise` carries, and nothing else does.
constexpr bool goes_pairwise(Collective collective) {
  return is_message(collective) || collective == Collective::gather ||
         collective == Collective::scatter || collective == Collective::all_to_all;
}

constexpr bool sends(Collective collective) {
  return collective == Collective::send || collective == Collective::sendrecv;
}
constexpr bool receives(Collective collective) {
  return collective == Collective::recv || collective == Collective::sendrecv;
}

constexpr bool reduces(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
         collective == Collective::reduce;
}

}  // namespace rondo::detail
