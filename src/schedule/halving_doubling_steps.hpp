// The steps of `halving_doubling`.
//
// Rabenseifner's algorithm, for all_reduces of some KiB between hosts: as few hops as 2 ⌊log2 n⌋,
// and each rank sends about as many bytes as in a ring. First a reduce-scatter by recursive
// halving: a rank and its partner each take half of the chunks that they still have in common, and
// send the other half. Then an all-gather by recursive doubling, along the same edges. Here a step
// names a range of chunks: "s 0-1" is "send chunks 0 and 1", rrc recv-reduce-copy, rc recv-copy. n
// = 4:
//
//   step   position 0      position 1      position 2      position 3
//    0      s   2-3 to 2    s   2-3 to 3    s   0-1 to 0    s   0-1 to 1
//    1      rrc 0-1         rrc 0-1         rrc 2-3         rrc 2-3
//    2      s   1   to 1    s   0   to 0    s   3   to 3    s   2   to 2
//    3      rrc 0           rrc 1           rrc 2           rrc 3        reduce-scatter done
//    4      s   0   to 1    s   1   to 0    s   2   to 3    s   3   to 2
//    5      rc  1           rc  0           rc  3           rc  2
//    6      s   0-1 to 2    s   0-1 to 3    s   2-3 to 0    s   2-3 to 1
//    7      rc  2-3         rc  2-3         rc  0-1         rc  0-1
//
// When n is not a power of two, pairs are formed as in recursive_doubling. A step needs all that
// the steps before it received, so the whole vector is handled in one window. Source: R. Thakur, R.
// Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH", Int. J.
// High Perform. Comput. Appl. 19 (2005).
#pragma once

#include "schedule/recursive_doubling_steps.hpp"
#include "schedule/step.hpp"

namespace rondo::detail {

namespace halving {

RONDO_HOST_DEVICE constexpr int chunks(int size) { return 1 << doubling::rounds(size); }

RONDO_HOST_DEVICE constexpr int steps(const Schedule& s) {
  if (!doubling::takes_part(s)) return 2;
  return 4 * doubling::rounds(s.size) + (s.position < doubling::paired(s.size) ? 2 : 0);
}

// `step` with the `count` chunks (a power of two) among which chunk `index` is, from a multiple of
// `count` on.
RONDO_HOST_DEVICE constexpr Step with_chunks_of(Step step, int index, int count) {
  step.chunk = index & ~(count - 1);
  step.chunk_count = count;
  return step;
}

RONDO_HOST_DEVICE constexpr Step whole(Step step, int size) {
  step.chunk_count = chunks(size);
  return step;
}

// A step of a position that takes part, without those for its pair.
RONDO_HOST_DEVICE constexpr Step exchange_step(const Schedule& s, int index, bool for_two) {
  const int rounds = doubling::rounds(s.size);
  const int pairs = doubling::paired(s.size) / 2;
  const int mine = for_two ? s.position / 2 : s.position - pairs;
  const bool sends = index % 2 == 0;
  if (index < 2 * rounds) {
    const int round = index / 2;
    const int distance = chunks(s.size) >> (round + 1);
    const int partner = doubling::partner(s, rounds - 1 - round);
    const int mine_is_output = for_two || round > 0 ? kMineIsOutput : 0;
    if (sends) {
      const int verb = kSend | mine_is_output;
      return with_chunks_of({static_cast<std::uint8_t>(verb), 0, kNobody, partner}, mine ^ distance,
                            distance);
    }
    const bool input = round == 0 && partner >= doubling::paired(s.size);
    const int verb = kRecvReduceCopy | mine_is_output | (round == rounds - 1 ? kFinish : 0) |
                     (input ? kReceivedIsInput : 0);
    return with_chunks_of({static_cast<std::uint8_t>(verb), 0, partner, kNobody}, mine, distance);
  }
  const int round = index / 2 - rounds;
  const int distance = 1 << round;
  const int partner = doubling::partner(s, round);
  if (sends) return with_chunks_of({kSend | kMineIsOutput, 0, kNobody, partner}, mine, distance);
  return with_chunks_of({kRecvCopy, 0, partner, kNobody}, mine ^ distance, distance);
}

RONDO_HOST_DEVICE constexpr Step step(const Schedule& s, int index) {
  if (!doubling::takes_part(s)) {
    if (index == 0) return whole({kSend, 0, kNobody, s.position + 1}, s.size);
    return whole({kRecvCopy, 0, s.position + 1, kNobody}, s.size);
  }
  if (s.position >= doubling::paired(s.size)) return exchange_step(s, index, false);
  if (index == 0) {
    return whole({kRecvReduceCopy | kReceivedIsInput, 0, s.position - 1, kNobody}, s.size);
  }
  if (index == steps(s) - 1) {
    return whole({kSend | kMineIsOutput, 0, kNobody, s.position - 1}, s.size);
  }
  return exchange_step(s, index - 1, true);
}

}  // namespace halving

}  // namespace rondo::detail
