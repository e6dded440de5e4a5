// What a kernel and the hosts tell each other, in host memory that both reach: that the communicator
// has ended, and why a block gave up.
#pragma once

#include <cstdint>

#include "fifo/atomics.hpp"
#include "fifo/fifo.hpp"
#include "fifo/signature.hpp"

namespace rondo::detail::gpu {

enum class FailureKind : std::uint64_t { none, aborted, timed_out, mismatched };

// One for each rank and channel. Written once, by the block that gives up.
struct alignas(kCounterSpacing) Failure {
  // A FailureKind. Stored last, with release; a host that has loaded it with acquire may read the rest.
  std::uint64_t kind = 0;
  std::int32_t peer = 0;  // the rank waited for
  Signature mine;
  Signature theirs;  // when mismatched
  std::uint64_t slices_received = 0;
  std::uint64_t bytes_sent = 0;
};
static_assert(sizeof(Failure) == kCounterSpacing);

// What one rank's kernels see of it.
struct Control {
  // Not zero once the communicator has ended: 1 + the rank that ended it. Any rank's kernel or host
  // stores it; whichever comes last stays. Kernels look at it as they wait.
  FifoCounter* abort = nullptr;
  // How many calls this rank's channel 0 has begun: for those that wait for it in vain.
  FifoCounter* entered = nullptr;
  Failure* failures = nullptr;  // of this rank, by channel
};

}  // namespace rondo::detail::gpu
