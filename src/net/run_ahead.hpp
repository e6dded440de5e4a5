// How far a sender runs ahead of its receiver, along one edge between hosts.
//
// A messenger may buffer messages that the receiver has not taken yet. To bound how much, after
// every half FIFO of bytes, or a thousand messages, the next one ends only when the receiver takes
// it (Delivery::taken). Not after every few messages: the end of a small call would wait for the
// receiver's answer. It is the next message, not the last of that half, since a call ends when its
// messages have ended: a call that sends half a FIFO would wait for the answer to its last message,
// and between distant hosts that answer takes as long as the call.
#pragma once

#include <cstdint>

#include "fifo/fifo.hpp"

namespace rondo::detail {

class RunAhead {
 public:
  explicit RunAhead(const FifoGeometry& fifo) : most_bytes_(fifo.slots * fifo.slot_bytes / 2) {}

  // A message of so many bytes is sent. Returns whether it is to end only when it is taken.
  bool must_be_taken(std::uint64_t bytes) {
    const bool now = bytes_ >= most_bytes_ || messages_ >= kMostMessages;
    bytes_ = (now ? 0 : bytes_) + bytes;
    messages_ = (now ? 0 : messages_) + 1;
    return now;
  }

 private:
  static constexpr std::uint64_t kMostMessages = 1024;

  std::uint64_t most_bytes_;
  // Since the last message that was to be taken.
  std::uint64_t bytes_ = 0;
  std::uint64_t messages_ = 0;
};

}  // namespace rondo::detail
