// Why a call cannot go on, and how far it had come.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>

#include "fifo/signature.hpp"

namespace rondo::detail {

enum class Cause : std::uint8_t {
  aborted,        // a rank has ended the communicator: the abort board says why
  peer_ended,     // the peer's process has ended
  peer_left,      // the peer has destroyed its communicator
  host_vanished,  // the peer's host does not answer any more
  other_call,     // the peer makes another call
  timed_out
};

// What a wait on a host throws in place of returning, and what is thrown where another call is
// seen. It never leaves the engine, which makes a public error of it (engine/ending.hpp).
struct Failure : std::exception {
  Failure(Cause why, int about, std::optional<Signature> call = std::nullopt)
      : cause(why), peer(about), other_call(call) {}

  Cause cause;
  int peer;  // the rank that the failure is about: the one waited for, or another of this host
  std::optional<Signature> other_call;  // the peer's call, if that is the cause
  // The earlier call that `peer` has not confirmed, if this rank waited for that
  // (engine/confirmation.hpp).
  std::optional<Signature> unconfirmed;
};

// How far a call has come, for the texts of errors.
struct Progress {
  std::uint64_t slices_received = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t passes = 0;  // of stages inside the host
  // Where ranks reach each other's buffers, or their host's: how many there are, have shown theirs,
  // and have done their part.
  int ranks = 0;
  int ranks_shown = 0;
  int ranks_done = 0;
};

}  // namespace rondo::detail
