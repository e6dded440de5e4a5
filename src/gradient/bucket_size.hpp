// How large buckets should be on this communicator.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include <rondo/communicator.hpp>
#include <rondo/gradients.hpp>

#include "gradient/bucket_plan.hpp"

namespace rondo::detail {

// How long an all_reduce of so many bytes takes as buckets make it; the same on all ranks. Collective.
using CallTime = std::function<double(std::size_t bytes)>;

// Of host memory: rank 0's median of a few.
double call_us(Communicator& communicator, std::size_t bytes);

// What an all_reduce costs at all, and what each byte of it adds.
struct CallCost {
  double fixed_us = 0;
  double bytes_per_us = 0;
};

// Takes some tens of milliseconds, more on links below 100 Mbit/s.
CallCost measure_calls(const CallTime& call_us);

// Many buckets pay the fixed cost often: model/bucket · fixed. One that fills late travels when nothing is left to
// hide it behind: bucket/rate. Their sum is least at √(model · fixed · rate). The first is hidden as long as
// the link is faster than backprop, so half of that is taken: a power of two near it.
std::size_t bucket_bytes_for(const CallCost& cost, std::size_t model_bytes);

// What the options say, or what is measured where they say nothing. Collective.
BucketLimits limits_for(const GradientOptions& options, std::span<const ParameterShape> shapes,
                        const Communicator& communicator, const CallTime& call_us);

}  // namespace rondo::detail
