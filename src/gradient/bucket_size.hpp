// How large buckets should be on this communicator.
#pragma once

#include <cstddef>

#include <rondo/communicator.hpp>

namespace rondo::detail {

// What an all_reduce costs at all, and what each byte of it adds.
struct CallCost {
  double fixed_us = 0;
  double bytes_per_us = 0;
};

// Collective; rank 0's measurement, on all ranks. Takes some tens of milliseconds, more on links below
// 100 Mbit/s.
CallCost measure_calls(Communicator& communicator);

// Many buckets pay the fixed cost often: model/bucket · fixed. One that fills late travels when nothing is left to
// hide it behind: bucket/rate. Their sum is least at √(model · fixed · rate). The first is hidden as long as
// the link is faster than backprop, so half of that is taken: a power of two near it.
std::size_t bucket_bytes_for(const CallCost& cost, std::size_t model_bytes);

}  // namespace rondo::detail
