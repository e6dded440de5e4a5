// What a rank does before and after it touches the buffers of the other ranks of its host, as
// `direct` does, and `hierarchical` inside hosts.
//
// The release store of end() pairs with the acquire in has_touched, so a rank that returns from
// wait_for_all() finds what the others wrote to its buffers, and nobody reads them any more.
//
// When a call fails, the caller may free its buffers at once. So a rank that fails does not return
// while another may touch them. Both sides store, then load, all sequentially consistent: a rank
// first sets begin_touching and then looks at the abort board; one that fails first raises the
// board and then looks who is touching. So either the first finds the board raised and touches
// nothing, or the second finds it touching and waits for it. A rank that touches looks at the board
// in all its waits, so this takes no longer than its work between two waits; a process that was
// stopped in the middle keeps others no longer than kPatience: they then make the pages of their
// buffers private, as soon as no other call of their process has shown these pages.
#pragma once

#include <cstdint>

#include <rondo/call.hpp>

#include "carrier/presence.hpp"
#include "engine/failure.hpp"
#include "engine/waiter.hpp"
#include "engine/wiring.hpp"
#include "schedule/direct_part.hpp"

namespace rondo::detail {

// Whether the other ranks can find these buffers.
inline bool reachable(const BufferLocations& buffers) {
  return buffers.in != kUnreachable && buffers.out != kUnreachable;
}

// Returns the part of `call` that each rank has if every rank reaches all buffers.
DirectCall direct_part_of(const Call& call, int size);

class Touching {
 public:
  // Counts in `progress` the ranks that have done their part.
  Touching(Wiring& wiring, Waiter& waiter, Progress& progress)
      : wiring_(wiring), waiter_(waiter), progress_(progress) {}

  // `call` stays until the call has ended.
  void begin_call(const Call& call, std::uint64_t sequence) {
    call_ = &call;
    sequence_ = sequence;
  }
  // Says that from now on this rank touches the others' buffers. Throws Failure if it must not,
  // since the communicator has ended.
  void begin();
  // This rank has done its part.
  void end();
  // Waits until all ranks of the host have done theirs. Throws Failure.
  void wait_for_all();

  // The call has failed: this rank touches no buffers any more.
  void renounce();
  // After that, and after the abort board was raised: returns when no rank touches this rank's
  // buffers.
  void withdraw();

 private:
  [[nodiscard]] bool anyone_touches() const;
  [[nodiscard]] Presence& presence(int rank) const { return wiring_.links.segment->presence(rank); }

  Wiring& wiring_;
  Waiter& waiter_;
  Progress& progress_;
  const Call* call_ = nullptr;
  std::uint64_t sequence_ = 0;
};

}  // namespace rondo::detail
