// How kernels and hosts inform each other, in host memory that both reach: that the communicator
// has ended, and the failures of blocks.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/portable.hpp"

#include "fifo/atomics.hpp"
#include "fifo/fifo.hpp"
#include "fifo/signature.hpp"

namespace rondo::detail::gpu {

enum class FailureKind : std::uint64_t { none, aborted, timed_out, mismatched };

// One for each rank and block. Written once, by the block that gives up.
struct alignas(kCounterSpacing) KernelFailure {
  // A FailureKind. Stored last, with release; a host that has loaded it with acquire may read the
  // rest.
  std::uint64_t kind = 0;
  std::int32_t peer = 0;  // the rank waited for
  Signature mine;
  Signature theirs;  // when mismatched
  std::uint64_t slices_received = 0;
  std::uint64_t bytes_sent = 0;
};
static_assert(sizeof(KernelFailure) == kCounterSpacing);

// The last call that a rank's device has shown to the hosts; messages are not shown. A call is
// shown at its first long wait, when it fails and when it ends. Threads of channel 0 write this
// with relaxed stores, all of them the same for one call. No store is ordered: a host accepts a
// copy only if `calls` is one more than the signature's sequence, and is the same after the copy.
struct alignas(kCounterSpacing) DevicePresence {
  std::uint64_t calls = 0;  // including this one
  std::uint64_t signature[sizeof(Signature) / sizeof(std::uint64_t)] = {};
};
static_assert(sizeof(DevicePresence) == kCounterSpacing);

// The part of this memory that one rank's kernels use.
struct Control {
  // Not zero once the communicator has ended: 1 + the rank that ended it. Any rank's kernel or host
  // may store it; the last store stays. Kernels check it while they wait.
  FifoCounter* abort = nullptr;
  DevicePresence* presence = nullptr;  // this rank's
  KernelFailure* failures = nullptr;   // of this rank, by block
};

// Shows this rank's call to the hosts, for error texts and to find mismatches. Threads of channel 0
// call this, several of them perhaps at once, with the same signature; it never waits.
RONDO_HOST_DEVICE inline void announce(const Control& control, const Signature& signature) {
  struct Words {
    std::uint64_t of[sizeof(Signature) / sizeof(std::uint64_t)];
  };
  const auto words = std::bit_cast<Words>(signature);
  RONDO_UNROLL
  for (std::size_t i = 0; i < sizeof(Signature) / sizeof(std::uint64_t); ++i) {
    store_relaxed(control.presence->signature[i], words.of[i]);
  }
  store_relaxed(control.presence->calls, signature.sequence + 1);
}

}  // namespace rondo::detail::gpu
