// What a rank does, as pure integers: no pointers, no element types, no transports. Host and device
// compile this header alike.
//
// Ranks are numbered here by their position in the ring. A step is one verb applied to one chunk;
// the verbs are fused, so that a rank reads and writes each element of its own buffer once, and all
// else lives in FIFO slots that stay in cache.
//
// A slot carries its call's signature, and the receiver compares it with its own. So that each rank
// receives something from every rank that its call sends to or receives from, schedules in which
// data goes one way only also send a greeting the other way: a slot without elements. Broadcast
// from position 1 of 4 by ring, the greeting "g":
//
//   step   position 0   position 1   position 2   position 3
//    0      g → 1        s 0 → 2      rcs 0 → 3    rcs 0 → 0
//    1      rc 0         r g
//
// Without the greeting the root would receive nothing, and would not notice that another rank has
// also called broadcast with itself as the root.
#pragma once

#include <cstdint>

#include <rondo/types.hpp>

#include "base/portable.hpp"

namespace rondo::detail {

// A verb is a set of these parts.
enum VerbPart : std::uint8_t {
  kRecv = 1,               // take a slot from `from`
  kReduce = 2,             // combine what was received with my elements
  kCopy = 4,               // write the value to my output
  kSend = 8,               // write the value to a slot towards `to`
  kMineIsOutput = 16,      // "my elements" are those of the output, not of the input
  kFinish = 32,            // the value is final: an average is divided here, once
  kMineFirst = 64,         // my elements are the left operand; else what was received is
  kReceivedIsInput = 128,  // what is reduced with my elements is the sender's input, not a sum yet
};

inline constexpr std::uint8_t kRecvReduceSend = kRecv | kReduce | kSend;
inline constexpr std::uint8_t kRecvReduceCopy = kRecv | kReduce | kCopy;
inline constexpr std::uint8_t kRecvReduceCopySend = kRecv | kReduce | kCopy | kSend;
inline constexpr std::uint8_t kRecvCopySend = kRecv | kCopy | kSend;
inline constexpr std::uint8_t kRecvCopy = kRecv | kCopy;
inline constexpr std::uint8_t kCopySend = kCopy | kSend;

inline constexpr int kNobody = -1;
// The chunk of a greeting, which has no elements.
inline constexpr int kNoChunk = -1;

struct Step {
  std::uint8_t verb = 0;
  int chunk = 0;
  int from = kNobody;
  int to = kNobody;
  int chunk_count = 1;  // chunks from `chunk` on, side by side in the vector: only halving_doubling
                        // and tree have more than one
  int lag = 0;          // how many windows this step is behind those without a lag: see slicing.hpp

  [[nodiscard]] constexpr bool has(VerbPart part) const { return (verb & part) != 0; }
};

RONDO_HOST_DEVICE constexpr Step send_greeting(int to) { return {kSend, kNoChunk, kNobody, to}; }
RONDO_HOST_DEVICE constexpr Step recv_greeting(int from) {
  return {kRecv, kNoChunk, from, kNobody};
}

// Steps `first` to `end`, which a rank walks window by window, all windows, before it begins the
// next phase. Most schedules are one phase. Several are needed where a step sends, or needs to have
// seen, all that earlier steps received, and not only the window before it.
struct Phase {
  int first = 0;
  int end = 0;
};

// One rank's part in one collective.
struct Schedule {
  Collective collective = Collective::barrier;
  Algorithm algorithm = Algorithm::ring;
  int position = 0;
  int size = 1;
  int root = 0;      // a position
  int to = kNobody;  // positions, in a message
  int from = kNobody;
  int most_halvings = 31;  // halving_doubling halves at most so often; 31: as often as it can

  // Into how many chunks the vector is cut: one for each rank, or one for all; in halving_doubling,
  // a power of two.
  [[nodiscard]] RONDO_HOST_DEVICE constexpr int chunks() const;
  [[nodiscard]] RONDO_HOST_DEVICE constexpr int steps() const;
  [[nodiscard]] RONDO_HOST_DEVICE constexpr Step step(int index) const;
  [[nodiscard]] RONDO_HOST_DEVICE constexpr int phases() const;
  [[nodiscard]] RONDO_HOST_DEVICE constexpr Phase phase(int index) const;
  // The largest lag of any step of a schedule that is one phase.
  [[nodiscard]] RONDO_HOST_DEVICE constexpr int most_lag() const;
  // Whether this position accumulates the whole vector although its output does not hold it.
  [[nodiscard]] RONDO_HOST_DEVICE constexpr bool needs_scratch() const;
  // In a chain, in naive's broadcasts and reductions, and in gather and scatter, a position may
  // finish its part before others have begun theirs. Returns the position that, when it finishes,
  // has received something from all others, directly or through others; kNobody if that is so for
  // every position.
  [[nodiscard]] constexpr int confirming_position() const;
};

}  // namespace rondo::detail
