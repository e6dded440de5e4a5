// The steps of `ring`, for two ranks or more (schedule.hpp has the answers for one).
//
// Ring all-reduce on n = 4 positions, chunks 0 to 3, each row one step. "s 3" is "send chunk 3",
// rrs is recv-reduce-send, rrcs recv-reduce-copy-send, rcs recv-copy-send, rc recv-copy:
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
// Source: P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", J. Parallel Distrib. Comput. 69 (2009).
#pragma once

#include "schedule/step.hpp"

namespace rondo::detail {

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
    default:  // goes pairwise
      return 0;
  }
}

// reduce-scatter: the partial sum of a chunk starts at the position after its owner and goes round
// the ring to it.
RONDO_HOST_DEVICE constexpr Step reduce_scatter_step(const Schedule& s, int index) {
  const int prev = wrap(s.position - 1, s.size);
  const int next = wrap(s.position + 1, s.size);
  const int chunk = wrap(s.position - 1 - index, s.size);
  if (index == 0) return {kSend, chunk, kNobody, next};
  const int input = index == 1 ? kReceivedIsInput : 0;
  const int verb = index < s.size - 1 ? kRecvReduceSend | input : kRecvReduceCopy | kFinish | input;
  return {static_cast<std::uint8_t>(verb), chunk, prev, index < s.size - 1 ? next : kNobody};
}

// all-gather: every finished chunk starts at its owner and goes round the ring to the position
// before it.
RONDO_HOST_DEVICE constexpr Step all_gather_step(const Schedule& s, int index) {
  const int prev = wrap(s.position - 1, s.size);
  const int next = wrap(s.position + 1, s.size);
  const int chunk = wrap(s.position - index, s.size);
  if (index == 0) return {kCopySend, chunk, kNobody, next};
  if (index < s.size - 1) return {kRecvCopySend, chunk, prev, next};
  return {kRecvCopy, chunk, prev, kNobody};
}

// The last step of reduce-scatter and the first of all-gather handle the same chunk, so they are
// one step.
RONDO_HOST_DEVICE constexpr Step all_reduce_step(const Schedule& s, int index) {
  const int joint = s.size - 1;
  if (index < joint) return reduce_scatter_step(s, index);
  if (index > joint) return all_gather_step(s, index - joint);
  Step step = reduce_scatter_step(s, index);
  step.verb |= kSend;
  step.to = wrap(s.position + 1, s.size);
  return step;
}

// The chain of a broadcast goes from the root to the position before it; that of a reduce goes from
// the position after the root to the root. The last position sends a greeting to the first, along
// the edge that closes the ring, before it waits for anything.
RONDO_HOST_DEVICE constexpr Step chain_step(const Schedule& s, int index) {
  const int prev = wrap(s.position - 1, s.size);
  const int next = wrap(s.position + 1, s.size);
  const int distance = distance_in_chain(s);
  const bool broadcasts = s.collective == Collective::broadcast;
  if (distance == 0) {
    if (index == 1) return recv_greeting(prev);
    return {broadcasts ? kCopySend : static_cast<std::uint8_t>(kSend), 0, kNobody, next};
  }
  const int input = distance == 1 ? kReceivedIsInput : 0;
  if (distance < s.size - 1) {
    const int reduces = kRecvReduceSend | input;
    return {broadcasts ? kRecvCopySend : static_cast<std::uint8_t>(reduces), 0, prev, next};
  }
  if (index == 0) return send_greeting(next);
  if (broadcasts) return {kRecvCopy, 0, prev, kNobody};
  const int verb = kRecvReduceCopy | kFinish | input;
  return {static_cast<std::uint8_t>(verb), 0, prev, kNobody};
}

RONDO_HOST_DEVICE constexpr Step step(const Schedule& s, int index) {
  switch (s.collective) {
    case Collective::all_reduce:
      return all_reduce_step(s, index);
    case Collective::reduce_scatter:
    case Collective::barrier:  // its last step depends on every other rank's first
      return reduce_scatter_step(s, index);
    case Collective::all_gather:
      return all_gather_step(s, index);
    case Collective::broadcast:
    case Collective::reduce:
      return chain_step(s, index);
    default:  // goes pairwise
      return {};
  }
}

}  // namespace ring

}  // namespace rondo::detail
