// From a checked call to a kernel launch.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <rondo/call.hpp>

#include "engine/plan.hpp"
#include "kernels/kernel.hpp"
#include "protocol/arguments.hpp"

namespace rondo::detail::gpu {

// Chunk borders that callers cannot see are rounded to this: one access of a thread.
inline constexpr std::uint64_t kGranuleBytes = 16;

// How many of the channels a call uses: fewer for small calls, whose slices would be too short to be worth a barrier.
// The same on all ranks that make the same call, and on both ranks of a message. Of a sendrecv: to send.
int channels_for(const Call& call, Algorithm algorithm, int size, int channels);

// Units that an inbox needs for each channel and sender, for calls by one_shot of up to `bytes`.
std::uint64_t inbox_units_for(std::uint64_t bytes, int channels);

// A rank's buffers in a call that may go by direct.
struct ShownBuffers {
  ShownBuffer in;
  ShownBuffer out;
};

// `channels`: in a sendrecv, to send; `receiving_channels` of the result is still to be set. `algorithm`: `automatic` goes
// by direct where the buffers of all ranks can be reached, and else by the ring; `shown`: for `automatic` and `direct`, where the other ranks reach this rank's buffers, or nothing if they cannot.
KernelArguments call_arguments(const Call& call, Algorithm algorithm, const RingPlace& place,
                               const RankView& rank, int channels, std::chrono::nanoseconds timeout,
                               const std::optional<ShownBuffers>& shown = std::nullopt);

// How many blocks the call's kernel has.
int blocks_for(const KernelArguments& arguments);

// The kernel that carries it out.
Kernel kernel_for_call(const Call& call, Algorithm algorithm);

}  // namespace rondo::detail::gpu
