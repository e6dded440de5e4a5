// What a rank does, as pure integers: no pointers, no element types, no transports. Host and device
// compile this header alike.
//
// Ranks are numbered here by their position in the ring. A step is one verb applied to one chunk;
// the verbs are fused, so that a rank reads and writes each element of its own buffer once, and all
// else lives in FIFO slots that stay in cache.
//
// Ring all-reduce on n = 4 positions, chunks 0 to 3, each row one step. "s 3" is "send chunk 3", rrs is
// recv-reduce-send, rrcs recv-reduce-copy-send, rcs recv-copy-send, rc recv-copy:
//
//   step   position 0   position 1   position 2   position 3
//    0      s    3       s    0       s    1       s    2
//    1      rrs  2       rrs  3       rrs  0       rrs  1
//    2      rrs  1       rrs  2       rrs  3       rrs  0
//    3      rrcs 0       rrcs 1       rrcs 2       rrcs 3     reduce-scatter done: p owns chunk p
//    4      rcs  3       rcs  0       rcs  1       rcs  2
//    5      rcs  2       rcs  3       rcs  0       rcs  1
//    6      rc   1       rc   2       rc   3       rc   0
//
// What position p receives at step i is what position p−1 sent at step i−1: the same chunk. The
// first half alone is reduce-scatter, the second half alone all-gather.
//
// A slot carries its call's signature, and whoever receives it compares. So that each rank receives
// something from every rank that its call sends to or hears of, schedules in which data goes one way
// only also send a greeting the other way: a slot without elements. Broadcast from position 1 of 4 by
// ring, the greeting "g":
//
//   step   position 0   position 1   position 2   position 3
//    0      g → 1        s 0 → 2      rcs 0 → 3    rcs 0 → 0
//    1      rc 0         r g
//
// Without it the root would receive nothing, and would not notice that another rank takes itself for
// the root.
// Source: P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", J. Parallel Distrib. Comput. 69 (2009).
#pragma once

#include <cstdint>

#include <rondo/types.hpp>

#include "base/portable.hpp"

namespace rondo::detail {

// A verb is a set of these parts.
enum VerbPart : std::uint8_t {
  kRecv = 1,           // take a slot from `from`
  kReduce = 2,         // combine what was received with my elements
  kCopy = 4,           // write the value to my output
  kSend = 8,           // write the value to a slot towards `to`
  kMineIsOutput = 16,  // "my elements" are those of the output, not of the input
  kFinish = 32,        // the value is final: an average is divided here, once
  kMineFirst = 64,     // my elements are the left operand; else what was received is
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

  [[nodiscard]] constexpr bool has(VerbPart part) const { return (verb & part) != 0; }
};

RONDO_HOST_DEVICE constexpr Step send_greeting(int to) { return {kSend, kNoChunk, kNobody, to}; }
RONDO_HOST_DEVICE constexpr Step recv_greeting(int from) {
  return {kRecv, kNoChunk, from, kNobody};
}

// One rank's part in one collective.
struct Schedule {
  Collective collective = Collective::barrier;
  Algorithm algorithm = Algorithm::ring;
  int position = 0;
  int size = 1;
  int root = 0;  // a position

  // Into how many chunks the vector is cut: one for each rank, or one for all.
  [[nodiscard]] RONDO_HOST_DEVICE constexpr int chunks() const;
  [[nodiscard]] RONDO_HOST_DEVICE constexpr int steps() const;
  [[nodiscard]] RONDO_HOST_DEVICE constexpr Step step(int index) const;
  // Whether this position accumulates the whole vector although its output does not hold it.
  [[nodiscard]] RONDO_HOST_DEVICE constexpr bool needs_scratch() const;
  // In a chain, and in naive's broadcasts and reductions, a position may be through with its part before others
  // have begun theirs. This one has heard of all others, directly or through others, when it is through. kNobody:
  // so has every position.
  [[nodiscard]] constexpr int position_that_hears_of_all() const;
};

namespace ring {

RONDO_HOST_DEVICE constexpr int wrap(int value, int size) {
  const int rest = value % size;
  return rest < 0 ? rest + size : rest;
}

// How far a position is from where the chain of a broadcast or a reduce begins.
RONDO_HOST_DEVICE constexpr int distance_in_chain(const Schedule& s) {
  return wrap(s.position - s.root - (s.collective == Collective::reduce ? 1 : 0), s.size);
}

RONDO_HOST_DEVICE constexpr int steps(const Schedule& s) {
  switch (s.collective) {
    case Collective::all_reduce:
      return 2 * s.size - 1;
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::barrier:
      return s.size;
    case Collective::broadcast:
    case Collective::reduce: {
      const int distance = distance_in_chain(s);
      return distance == 0 || distance == s.size - 1 ? 2 : 1;
    }
  }
  return 0;
}

// reduce-scatter: the partial sum of a chunk starts right after its owner and walks round to it.
RONDO_HOST_DEVICE constexpr Step reduce_scatter_step(const Schedule& s, int index) {
  const int prev = wrap(s.position - 1, s.size);
  const int next = wrap(s.position + 1, s.size);
  const int chunk = wrap(s.position - 1 - index, s.size);
  if (index == 0) return {kSend, chunk, kNobody, next};
  if (index < s.size - 1) return {kRecvReduceSend, chunk, prev, next};
  return {kRecvReduceCopy | kFinish, chunk, prev, kNobody};
}

// all-gather: every finished chunk starts at its owner and walks round to the one before it.
RONDO_HOST_DEVICE constexpr Step all_gather_step(const Schedule& s, int index) {
  const int prev = wrap(s.position - 1, s.size);
  const int next = wrap(s.position + 1, s.size);
  const int chunk = wrap(s.position - index, s.size);
  if (index == 0) return {kCopySend, chunk, kNobody, next};
  if (index < s.size - 1) return {kRecvCopySend, chunk, prev, next};
  return {kRecvCopy, chunk, prev, kNobody};
}

// The last step of reduce-scatter and the first of all-gather are about the same chunk: one step.
RONDO_HOST_DEVICE constexpr Step all_reduce_step(const Schedule& s, int index) {
  const int joint = s.size - 1;
  if (index < joint) return reduce_scatter_step(s, index);
  if (index > joint) return all_gather_step(s, index - joint);
  const Step last = reduce_scatter_step(s, index);
  return {kRecvReduceCopySend | kFinish, last.chunk, last.from, wrap(s.position + 1, s.size)};
}

// A chain: of a broadcast from the root round to the position before it, of a reduce from the position
// after the root round to the root. The last position greets the first, along the edge that closes the
// ring, before it waits for anything.
RONDO_HOST_DEVICE constexpr Step chain_step(const Schedule& s, int index) {
  const int prev = wrap(s.position - 1, s.size);
  const int next = wrap(s.position + 1, s.size);
  const int distance = distance_in_chain(s);
  const bool broadcasts = s.collective == Collective::broadcast;
  if (distance == 0) {
    if (index == 1) return recv_greeting(prev);
    return {broadcasts ? kCopySend : static_cast<std::uint8_t>(kSend), 0, kNobody, next};
  }
  if (distance < s.size - 1) {
    return {broadcasts ? kRecvCopySend : kRecvReduceSend, 0, prev, next};
  }
  if (index == 0) return send_greeting(next);
  if (broadcasts) return {kRecvCopy, 0, prev, kNobody};
  return {kRecvReduceCopy | kFinish, 0, prev, kNobody};
}

RONDO_HOST_DEVICE constexpr Step step(const Schedule& s, int index) {
  switch (s.collective) {
    case Collective::all_reduce:
      return all_reduce_step(s, index);
    case Collective::reduce_scatter:
    case Collective::barrier:  // its last step follows from every other rank's first
      return reduce_scatter_step(s, index);
    case Collective::all_gather:
      return all_gather_step(s, index);
    case Collective::broadcast:
    case Collective::reduce:
      return chain_step(s, index);
  }
  return {};
}

}  // namespace ring

// Everything to position 0, then back: one edge each way between 0 and each other position. Both carry
// something in every call: where a position has nothing to send, it greets.
namespace naive {

// Position 0 takes in all others' elements, one position after the other.
RONDO_HOST_DEVICE constexpr Step accumulate_step(int chunk, int peer, int size) {
  int verb = kRecvReduceCopy;
  if (peer > 1) verb |= kMineIsOutput;
  if (peer == size - 1) verb |= kFinish;
  return {static_cast<std::uint8_t>(verb), chunk, peer, kNobody};
}

RONDO_HOST_DEVICE constexpr Step send_output_step(int chunk, int peer) {
  return {kSend | kMineIsOutput, chunk, kNobody, peer};
}

RONDO_HOST_DEVICE constexpr int steps(const Schedule& s) {
  const int others = s.size - 1;
  const bool centre = s.position == 0;
  switch (s.collective) {
    case Collective::all_reduce:
    case Collective::barrier:
      return centre ? 2 * others : 2;
    case Collective::reduce_scatter:
      return centre ? s.size * others + others : s.size + 1;
    case Collective::all_gather:
      return centre ? 1 + others + others * others : 1 + others;
    case Collective::broadcast:
      return centre ? 2 * others + (s.root == 0 ? 1 : 0) : 2;
    case Collective::reduce:
      return centre ? 2 * others : 2;
  }
  return 0;
}

// Positions 1 … n−1 without `skipped`, in order.
RONDO_HOST_DEVICE constexpr int other_than(int index, int skipped) {
  return index < skipped ? index : index + 1;
}

// In a broadcast and a reduce, position 0 exchanges greetings with all others but this one: the root, if
// that is another.
RONDO_HOST_DEVICE constexpr int not_greeted(const Schedule& s) {
  return s.root == 0 ? s.size : s.root;
}

RONDO_HOST_DEVICE constexpr Step centre_step(const Schedule& s, int index) {
  const int others = s.size - 1;
  switch (s.collective) {
    case Collective::all_reduce:
    case Collective::barrier:
      if (index < others) return accumulate_step(0, index + 1, s.size);
      return send_output_step(0, index - others + 1);
    case Collective::reduce_scatter:
      if (index < s.size * others) {
        return accumulate_step(index / others, index % others + 1, s.size);
      }
      return send_output_step(index - s.size * others + 1, index - s.size * others + 1);
    case Collective::all_gather: {
      if (index == 0) return {kCopy, 0, kNobody, kNobody};
      if (index <= others) return {kRecvCopy, index, index, kNobody};
      const int peer = (index - 1 - others) / others + 1;
      return send_output_step(other_than((index - 1 - others) % others, peer), peer);
    }
    case Collective::broadcast: {
      if (index == 0 && s.root == 0) return {kCopy, 0, kNobody, kNobody};
      if (index == 0) return {kRecvCopy, 0, s.root, kNobody};
      if (index <= others) {
        return index == s.root ? send_greeting(index) : send_output_step(0, index);
      }
      return recv_greeting(other_than(index - others, not_greeted(s)));
    }
    case Collective::reduce: {
      const int greetings = s.root == 0 ? others : others - 1;
      if (index < greetings) return send_greeting(other_than(index + 1, not_greeted(s)));
      if (index < greetings + others) return accumulate_step(0, index - greetings + 1, s.size);
      return send_output_step(0, s.root);
    }
  }
  return {};
}

RONDO_HOST_DEVICE constexpr Step outer_step(const Schedule& s, int index) {
  switch (s.collective) {
    case Collective::all_reduce:
    case Collective::barrier:
      if (index == 0) return {kSend, 0, kNobody, 0};
      return {kRecvCopy, 0, 0, kNobody};
    case Collective::reduce:
      if (index == 0) return {kSend, 0, kNobody, 0};
      return s.position == s.root ? Step{kRecvCopy, 0, 0, kNobody} : recv_greeting(0);
    case Collective::reduce_scatter:
      if (index < s.size) return {kSend, index, kNobody, 0};
      return {kRecvCopy, s.position, 0, kNobody};
    case Collective::all_gather:
      if (index == 0) return {kCopySend, s.position, kNobody, 0};
      return {kRecvCopy, other_than(index - 1, s.position), 0, kNobody};
    case Collective::broadcast:
      if (s.position != s.root)
        return index == 0 ? send_greeting(0) : Step{kRecvCopy, 0, 0, kNobody};
      return index == 0 ? Step{kCopySend, 0, kNobody, 0} : recv_greeting(0);
  }
  return {};
}

RONDO_HOST_DEVICE constexpr Step step(const Schedule& s, int index) {
  return s.position == 0 ? centre_step(s, index) : outer_step(s, index);
}

}  // namespace naive

// Recursive doubling, for all_reduces and barriers of few bytes, where the number of hops counts and not what
// they carry: ⌊log2 n⌋ exchanges of the whole vector, in each of which a rank and its partner combine what
// they have. n = 4: positions 0 and 1 exchange, and 2 and 3; then 0 and 2, and 1 and 3:
//
//   step   position 0     position 1     position 2     position 3
//    0      s      to 1    s      to 0    s      to 3    s      to 2
//    1      rrcs 1 to 2    rrcs 0 to 3    rrcs 3 to 0    rrcs 2 to 1
//    2      rrc  2         rrc  3         rrc  0         rrc  1
//
// When n is not a power of two, each of the first positions that are too many hands its vector to the one
// after it, which takes part for both and hands the result back: two more hops. Both partners combine the
// lower position's elements with the higher one's, in this order, so that all get the same bits.
// Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in
// MPICH", Int. J. High Perform. Comput. Appl. 19 (2005).
namespace doubling {

RONDO_HOST_DEVICE constexpr int rounds(int size) {
  int rounds = 0;
  while ((2 << rounds) <= size) ++rounds;
  return rounds;
}

// Positions below this come in pairs, of which the second takes part.
RONDO_HOST_DEVICE constexpr int paired(int size) { return 2 * (size - (1 << rounds(size))); }

RONDO_HOST_DEVICE constexpr bool takes_part(const Schedule& s) {
  return s.position >= paired(s.size) || s.position % 2 == 1;
}

// Whom a position that takes part exchanges with in a round.
RONDO_HOST_DEVICE constexpr int partner(const Schedule& s, int round) {
  const int pairs = paired(s.size) / 2;
  const int mine = s.position < paired(s.size) ? s.position / 2 : s.position - pairs;
  const int theirs = mine ^ (1 << round);
  return theirs < pairs ? 2 * theirs + 1 : theirs + pairs;
}

RONDO_HOST_DEVICE constexpr int steps(const Schedule& s) {
  return takes_part(s) ? rounds(s.size) + 1 : 2;
}

RONDO_HOST_DEVICE constexpr Step step(const Schedule& s, int index) {
  if (!takes_part(s)) {
    if (index == 0) return {kSend, 0, kNobody, s.position + 1};
    return {kRecvCopy, 0, s.position + 1, kNobody};
  }
  const bool for_two = s.position < paired(s.size);
  if (index == 0) {
    if (for_two) return {kRecvReduceCopySend, 0, s.position - 1, partner(s, 0)};
    return {kSend, 0, kNobody, partner(s, 0)};
  }
  const int from = partner(s, index - 1);
  int verb = kRecvReduceCopy;
  if (for_two || index > 1) verb |= kMineIsOutput;
  if (s.position < from) verb |= kMineFirst;
  int to = for_two ? s.position - 1 : kNobody;
  if (index == rounds(s.size)) {
    verb |= kFinish;
  } else {
    to = partner(s, index);
  }
  if (to != kNobody) verb |= kSend;
  return {static_cast<std::uint8_t>(verb), 0, from, to};
}

}  // namespace doubling

RONDO_HOST_DEVICE constexpr int Schedule::chunks() const {
  const bool whole = collective == Collective::broadcast || collective == Collective::reduce ||
                     (algorithm != Algorithm::ring &&
                      (collective == Collective::all_reduce || collective == Collective::barrier));
  return whole ? 1 : size;
}

RONDO_HOST_DEVICE constexpr int Schedule::steps() const {
  if (size == 1) return 1;
  if (!kOnDevice && algorithm == Algorithm::recursive_doubling) return doubling::steps(*this);
  return algorithm == Algorithm::naive ? naive::steps(*this) : ring::steps(*this);
}

RONDO_HOST_DEVICE constexpr Step Schedule::step(int index) const {
  if (size == 1) return {kCopy, 0, kNobody, kNobody};
  if (!kOnDevice && algorithm == Algorithm::recursive_doubling) return doubling::step(*this, index);
  return algorithm == Algorithm::naive ? naive::step(*this, index) : ring::step(*this, index);
}

constexpr int Schedule::position_that_hears_of_all() const {
  const bool one_way = collective == Collective::broadcast || collective == Collective::reduce;
  if (!one_way || size < 3) return kNobody;
  if (algorithm == Algorithm::naive) return 0;
  return collective == Collective::reduce ? root : ring::wrap(root - 1, size);
}

RONDO_HOST_DEVICE constexpr bool Schedule::needs_scratch() const {
  if (algorithm != Algorithm::naive || position != 0 || size == 1) return false;
  return collective == Collective::reduce_scatter ||
         (collective == Collective::reduce && root != 0);
}

}  // namespace rondo::detail
