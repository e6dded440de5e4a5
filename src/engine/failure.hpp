// Why a call could not go on, and how far it had come.
#pragma once

#include <cstdint>
#include <optional>

#include "fifo/signature.hpp"

namespace rondo::detail {

enum class WaitResult : std::uint8_t {
  ready,
  aborted,
  peer_ended,  // its process
  peer_left,   // it has destroyed its communicator
  other_call,
  timed_out
};

struct Failure {
  WaitResult result = WaitResult::ready;
  int peer = 0;  // whom it is about: the rank waited for, or another of this host
  std::optional<Signature> other_call = std::nullopt;  // the peer's, with WaitResult::other_call
};

struct Progress {
  std::uint64_t slices_received = 0;
  std::uint64_t bytes_sent = 0;
};

}  // namespace rondo::detail
