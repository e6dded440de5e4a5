// From a checked call to a kernel launch.
#pragma once

#include <chrono>
#include <cstdint>

#include <rondo/call.hpp>

#include "engine/plan.hpp"
#include "protocol/arguments.hpp"

namespace rondo::detail::gpu {

// Chunk borders that callers cannot see are rounded to this: one access of a thread.
inline constexpr std::uint64_t kGranuleBytes = 16;

// How many of the channels a call uses: fewer for small calls, whose slices would be too short to be worth a barrier.
// The same on all ranks that make the same call.
int channels_for(const Call& call, Algorithm algorithm, int size, int channels);

// Units that an inbox needs for each channel and sender, for calls by one_shot of up to `bytes`.
std::uint64_t inbox_units_for(std::uint64_t bytes, int channels);

KernelArguments call_arguments(const Call& call, Algorithm algorithm, const RingPlace& place,
                               const RankView& rank, int channels,
                               std::chrono::nanoseconds timeout);

}  // namespace rondo::detail::gpu
