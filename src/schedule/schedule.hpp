// The steps of all algorithms: what Schedule's members are.
#pragma once

#include "schedule/halving_doubling_steps.hpp"
#include "schedule/naive_steps.hpp"
#include "schedule/pairwise_steps.hpp"
#include "schedule/recursive_doubling_steps.hpp"
#include "schedule/ring_steps.hpp"
#include "schedule/step.hpp"
#include "schedule/tree_steps.hpp"

namespace rondo::detail {

RONDO_HOST_DEVICE constexpr int Schedule::chunks() const {
  if (!kOnDevice && algorithm == Algorithm::halving_doubling && size > 1) {
    return halving::chunks(*this);
  }
  if (!kOnDevice && is_message(collective)) return 1;
  const bool whole = collective == Collective::broadcast || collective == Collective::reduce ||
                     (algorithm != Algorithm::ring &&
                      (collective == Collective::all_reduce || collective == Collective::barrier));
  return whole ? 1 : size;
}

RONDO_HOST_DEVICE constexpr int Schedule::steps() const {
  if (size == 1) return 1;
  if (!kOnDevice && algorithm == Algorithm::recursive_doubling) return doubling::steps(*this);
  if (!kOnDevice && algorithm == Algorithm::halving_doubling) return halving::steps(*this);
  if (!kOnDevice && algorithm == Algorithm::tree) return tree::steps(*this);
  if (!kOnDevice && algorithm == Algorithm::pairwise) return pairwise::steps(*this);
  return algorithm == Algorithm::naive ? naive::steps(*this) : ring::steps(*this);
}

RONDO_HOST_DEVICE constexpr Step Schedule::step(int index) const {
  if (size == 1) return {kCopy, 0, kNobody, kNobody};
  if (!kOnDevice && algorithm == Algorithm::recursive_doubling) return doubling::step(*this, index);
  if (!kOnDevice && algorithm == Algorithm::halving_doubling) return halving::step(*this, index);
  if (!kOnDevice && algorithm == Algorithm::tree) return tree::step(*this, index);
  if (!kOnDevice && algorithm == Algorithm::pairwise) return pairwise::step(*this, index);
  return algorithm == Algorithm::naive ? naive::step(*this, index) : ring::step(*this, index);
}

RONDO_HOST_DEVICE constexpr int Schedule::phases() const {
  if (!kOnDevice && size > 1 && algorithm == Algorithm::halving_doubling) {
    return halving::phases(*this);
  }
  if (!kOnDevice && size > 1 && algorithm == Algorithm::tree) return tree::phases(*this);
  return 1;
}

RONDO_HOST_DEVICE constexpr Phase Schedule::phase(int index) const {
  if (!kOnDevice && size > 1 && algorithm == Algorithm::halving_doubling) {
    return halving::phase(*this, index);
  }
  if (!kOnDevice && size > 1 && algorithm == Algorithm::tree) return tree::phase(*this, index);
  return {0, steps()};
}

RONDO_HOST_DEVICE constexpr int Schedule::most_lag() const {
  if (!kOnDevice && algorithm == Algorithm::tree) return tree::goes_along_one_tree(*this) ? 0 : 1;
  if (!kOnDevice && algorithm == Algorithm::halving_doubling) return 1;
  return !kOnDevice && algorithm == Algorithm::pairwise && size > 1 ? pairwise::most_lag(*this) : 0;
}

constexpr int Schedule::confirming_position() const {
  if (!has_root(collective) || size < 3) return kNobody;
  if (algorithm == Algorithm::naive) return 0;
  if (algorithm == Algorithm::tree) return root;
  return collective == Collective::broadcast ? ring::wrap(root - 1, size) : root;
}

RONDO_HOST_DEVICE constexpr bool Schedule::needs_scratch() const {
  if (!kOnDevice && algorithm == Algorithm::tree) return size > 1 && tree::needs_scratch(*this);
  if (algorithm != Algorithm::naive || position != 0 || size == 1) return false;
  return collective == Collective::reduce_scatter ||
         (collective == Collective::reduce && root != 0);
}

}  // namespace rondo::detail
