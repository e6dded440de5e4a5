// How a thread of a block waits: it looks, and now and then asks whether the communicator has ended
// or the call's deadline has passed. A deadline counts from the call's first long wait, as on the
// host.
#pragma once

#include <cstdint>

#include "protocol/block.hpp"
#include "protocol/control.hpp"

namespace rondo::detail::gpu {

struct Patience {
  std::uint64_t timeout_ns = 0;
  std::uint64_t deadline_ns = 0;  // 0: no long wait yet
};

inline constexpr int kLooksPerQuestion = 64;

// Until `ready()`, which is then the last thing called.
template <Block B, class Ready>
RONDO_HOST_DEVICE RONDO_FORCE_INLINE FailureKind wait_until(B& block, const Control& control,
                                                            Patience& patience, Ready ready) {
  for (;;) {
    RONDO_DO_NOT_UNROLL
    for (int look = 0; look < kLooksPerQuestion; ++look) {
      if (ready()) return FailureKind::none;
      block.pause();
    }
    if (load_relaxed(control.abort->value) != 0) return FailureKind::aborted;
    const std::uint64_t now = block.now_ns();
    if (patience.deadline_ns == 0) patience.deadline_ns = now + patience.timeout_ns;
    if (now > patience.deadline_ns) return FailureKind::timed_out;
  }
}

// Leaves the reason where hosts find it, and stops the kernels of all ranks. By one thread of the
// block, once.
RONDO_HOST_DEVICE inline void give_up(const Control& control, int rank, int channel,
                                      const Failure& reason) {
  Failure& record = control.failures[channel];
  record.peer = reason.peer;
  record.mine = reason.mine;
  record.theirs = reason.theirs;
  record.slices_received = reason.slices_received;
  record.bytes_sent = reason.bytes_sent;
  // Release pairs with the acquire of the host that reads the record.
  store_release(record.kind, reason.kind);
  // Who was stopped by another has nothing to add.
  if (reason.kind == static_cast<std::uint64_t>(FailureKind::aborted)) return;
  store_release(control.abort->value, static_cast<std::uint64_t>(rank) + 1);
}

}  // namespace rondo::detail::gpu
