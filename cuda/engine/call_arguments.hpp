// From a checked call to a kernel launch.
#pragma once

#include <chrono>
#include <cstdint>

#include <rondo/communicator.hpp>

#include "engine/plan.hpp"
#include "protocol/arguments.hpp"

namespace rondo::detail::gpu {

// What chunk borders are rounded to where nobody can see them: one access of a thread.
inline constexpr std::uint64_t kGranuleBytes = 16;

// How many channels a call uses of those that there are: fewer for small ones, whose slices would be
// too short to be worth a barrier. The same on all ranks that make the same call.
int channels_for(const Call& call, Algorithm algorithm, int size, int channels);

// Units that an inbox needs for each channel and sender, for calls by one_shot of up to `bytes`.
std::uint64_t inbox_units_for(std::uint64_t bytes, int channels);

KernelArguments call_arguments(const Call& call, Algorithm algorithm, const RingPlace& place,
                               const RankView& rank, int channels,
                               std::chrono::nanoseconds timeout);

}  // namespace rondo::detail::gpu
