// From a planned call to a kernel launch.
#pragma once

#include <cstdint>
#include <optional>

#include <rondo/call.hpp>

#include "cuda/engine/exposed_layout.hpp"
#include "cuda/kernels/kernel.hpp"
#include "cuda/protocol/arguments.hpp"
#include "plan/plan.hpp"
#include "plan/plan_call.hpp"

namespace rondo::detail::gpu {

// Chunk borders that callers cannot see are rounded to this: one access of a thread.
inline constexpr std::uint64_t kGranuleBytes = 16;

// The blocks of a call's kernel: one for each of the channels that it uses. A sendrecv has blocks
// that send, and then blocks that receive.
struct CallBlocks {
  int channels = 1;  // in a sendrecv, to send
  int receiving_channels = 0;

  [[nodiscard]] int all() const { return channels + receiving_channels; }
};

// The blocks of a call of `rank`: fewer than there are channels if the call is so small that slices
// would be too short to be worth a barrier. All ranks that make the same call use the same
// channels, and so do both ranks of a message.
CallBlocks blocks_for(const Call& call, Algorithm algorithm, int rank,
                      const DeviceGeometry& geometry);

// Units that an inbox needs for each channel and sender, for calls by one_shot of up to `bytes`.
std::uint64_t inbox_units_for(std::uint64_t bytes, int channels);

// A rank's buffers in a call that may go by direct.
struct ShownBuffers {
  ShownBuffer in;
  ShownBuffer out;
};

// A call planned as `automatic` goes by direct where the buffers of all ranks can be reached, and
// else by the ring. `shown`: for `automatic` and `direct`, where the other ranks reach this rank's
// buffers, or nothing if they cannot.
KernelArguments call_arguments(const PlannedCall& planned, const RingPlace& place,
                               const RankView& rank, const CallBlocks& blocks,
                               const std::optional<ShownBuffers>& shown = std::nullopt);

// The kernel that carries it out.
Kernel kernel_for_call(const Call& call, Algorithm algorithm);

}  // namespace rondo::detail::gpu
