// Decides how large buckets should be on a communicator.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include <rondo/communicator.hpp>
#include <rondo/gradients.hpp>

#include "gradient/bucket_plan.hpp"

namespace rondo::detail {

// How long an all_reduce of so many bytes takes as buckets make it; the same on all ranks.
// Collective.
using CallTime = std::function<double(std::size_t bytes)>;

// For host memory: the median of a few calls, as rank 0 measured it.
double call_us(Communicator& communicator, std::size_t bytes);

// The cost of an all_reduce: a fixed part, and the rate at which its bytes are moved.
struct CallCost {
  double fixed_us = 0;
  double bytes_per_us = 0;
};

// Takes some tens of milliseconds, more on links below 100 Mbit/s.
CallCost measure_calls(const CallTime& call_us);

// Many buckets pay the fixed cost often: model/bucket · fixed. The last bucket is sent when no
// computation is left to hide its transfer: bucket/rate. The sum of both costs is least at √(model
// · fixed · rate). The first cost is hidden as long as the link is faster than backprop, so half of
// that is taken, rounded to a power of two.
std::size_t bucket_bytes_for(const CallCost& cost, std::size_t model_bytes);

// What the options say, or what is measured where they say nothing. Collective.
BucketLimits limits_for(const GradientOptions& options, std::span<const ParameterShape> shapes,
                        const Communicator& communicator, const CallTime& call_us);

}  // namespace rondo::detail
