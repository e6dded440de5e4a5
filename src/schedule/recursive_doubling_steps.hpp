// The steps of `recursive_doubling`.
//
// Recursive doubling, for all_reduces and barriers of few bytes, where the number of hops decides
// the time and not the number of bytes: ⌊log2 n⌋ exchanges of the whole vector, in each of which a
// rank and its partner combine what they have. n = 4: positions 0 and 1 exchange, and 2 and 3; then
// 0 and 2, and 1 and 3:
//
//   step   position 0     position 1     position 2     position 3
//    0      s      to 1    s      to 0    s      to 3    s      to 2
//    1      rrcs 1 to 2    rrcs 0 to 3    rrcs 3 to 0    rrcs 2 to 1
//    2      rrc  2         rrc  3         rrc  0         rrc  1
//
// When n is not a power of two, the first 2 (n − 2^⌊log2 n⌋) positions form pairs: the first of a
// pair sends its vector to the second, which takes part for both and sends the result back. This
// adds two hops. Both partners combine the lower position's elements with the higher one's, in this
// order, so that all get the same bits. Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization
// of collective communication operations in MPICH", Int. J. High Perform. Comput. Appl. 19 (2005).
#pragma once

#include "schedule/step.hpp"

namespace rondo::detail {

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

// The position with which a position that takes part exchanges in a round.
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
    if (for_two) return {kRecvReduceCopySend | kReceivedIsInput, 0, s.position - 1, partner(s, 0)};
    return {kSend, 0, kNobody, partner(s, 0)};
  }
  const int from = partner(s, index - 1);
  int verb = kRecvReduceCopy;
  if (for_two || index > 1) verb |= kMineIsOutput;
  if (s.position < from) verb |= kMineFirst;
  if (index == 1 && from >= paired(s.size)) verb |= kReceivedIsInput;
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

}  // namespace rondo::detail
