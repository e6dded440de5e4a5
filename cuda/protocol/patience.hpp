// How a thread of a block waits: it polls, and now and then checks whether the communicator has
// ended or the call's deadline has passed. A deadline counts from the call's first long wait, as on
// the host. A rank shows the hosts its call at that wait, or when the call fails or is over (a
// message never), and not when the call begins: this writes host memory over PCIe, and whatever is
// published next would wait for that write.
#pragma once

#include <cstdint>

#include "cuda/protocol/arguments.hpp"
#include "cuda/protocol/block.hpp"
#include "cuda/protocol/control.hpp"

namespace rondo::detail::gpu {

struct Patience {
  std::uint64_t timeout_ns = 0;
  std::uint64_t deadline_ns = 0;  // 0: no long wait yet
  // On threads of channel 0 that may show the hosts which call this is, until they have.
  bool to_announce = false;
  std::uint64_t sequence = 0;  // of this call on its channel

  RONDO_HOST_DEVICE void tell_hosts(const KernelArguments& call) {
    if (!to_announce) return;
    to_announce = false;
    Signature signature = call.signature;
    signature.sequence = sequence;
    announce(call.rank.control, signature);
  }
};

// Polls between two such checks: many, since a check takes about a microsecond over PCIe.
inline constexpr int kLooksPerQuestion = 256;

// Returns none as soon as ready() is true, and calls nothing after it; else the kind of failure.
template <Block B, class Ready>
RONDO_HOST_DEVICE RONDO_FORCE_INLINE FailureKind wait_until(B& block, const KernelArguments& call,
                                                            Patience& patience, Ready ready) {
  for (;;) {
    RONDO_DO_NOT_UNROLL
    for (int look = 0; look < kLooksPerQuestion; ++look) {
      if (ready()) return FailureKind::none;
      block.pause();
    }
    patience.tell_hosts(call);  // before a failure, whose text needs the call's number
    if (load_relaxed(call.rank.control.abort->value) != 0) return FailureKind::aborted;
    const std::uint64_t now = block.now_ns();
    if (patience.deadline_ns == 0) patience.deadline_ns = now + patience.timeout_ns;
    if (now > patience.deadline_ns) return FailureKind::timed_out;
  }
}

// Writes the failure where hosts read it, and stops the kernels of all ranks. Called once, by one
// thread of the block.
RONDO_HOST_DEVICE inline void give_up(const Control& control, int rank, int block_number,
                                      const KernelFailure& reason) {
  KernelFailure& record = control.failures[block_number];
  record.peer = reason.peer;
  record.mine = reason.mine;
  record.theirs = reason.theirs;
  record.slices_received = reason.slices_received;
  record.bytes_sent = reason.bytes_sent;
  // Release pairs with the acquire of the host that reads the record.
  store_release(record.kind, reason.kind);
  // A block that was itself stopped leaves the abort word as it is.
  if (reason.kind == static_cast<std::uint64_t>(FailureKind::aborted)) return;
  store_release(control.abort->value, static_cast<std::uint64_t>(rank) + 1);
}

}  // namespace rondo::detail::gpu
