// Why a call stopped (its failure), and how far it had come.
#pragma once

#include <cstdint>
#include <optional>

#include "fifo/signature.hpp"

namespace rondo::detail {

enum class WaitResult : std::uint8_t {
  ready,
  aborted,
  peer_ended,     // the peer's process has ended
  peer_left,      // the peer has destroyed its communicator
  host_vanished,  // the peer's host does not answer any more
  other_call,
  timed_out
};

struct Failure {
  WaitResult result = WaitResult::ready;
  int peer = 0;  // the rank that the failure is about: the one waited for, or another of this host
  std::optional<Signature> other_call = std::nullopt;  // the peer's call, if `result` is other_call
};

struct Progress {
  std::uint64_t slices_received = 0;
  std::uint64_t bytes_sent = 0;
};

}  // namespace rondo::detail
