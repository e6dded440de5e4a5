// Which reduction and factor an Average becomes in the calls that reduce buckets.
#pragma once

#include <cstdint>

#include <rondo/gradients.hpp>

namespace rondo::detail {

struct TakingPart {
  std::uint64_t ranks = 1;
  std::uint64_t live = 1;         // that have not joined
  std::uint64_t samples = 0;      // of all of them
  std::uint64_t own_samples = 0;  // this rank's
};

// Gradients are multiplied by `factor`, then reduced by `op`.
struct Averaging {
  ReduceOp op = ReduceOp::sum;
  double factor = 1;
};

Averaging averaging_for(const GradientOptions& options, const TakingPart& who);

}  // namespace rondo::detail
