// The steps of `halving_doubling`.
//
// Rabenseifner's algorithm, for all_reduces between hosts: as few hops as 2 ⌊log2 n⌋, and each rank
// sends about as many bytes as in a ring. First a reduce-scatter by recursive halving: a rank and
// its partner each take half of the chunks that they still have in common, and send the other half.
// Then an all-gather by recursive doubling, along the same edges. Here a step names a range of
// chunks: "s 0-1" is "send chunks 0 and 1", rrc recv-reduce-copy, rc recv-copy. n = 4:
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
// The later halvings save few bytes, and each costs a hop on the way back. So a schedule may halve
// less often than it could (Schedule::most_halvings): then those ranks that have the same chunk
// exchange the whole of it in each of the rounds that are left, as in recursive_doubling, before
// the all-gather. Here with one halving, where chunk 0 is the first half of the vector:
//
//   step   position 0      position 1      position 2      position 3
//    0      s   1   to 2    s   1   to 3    s   0   to 0    s   0   to 1
//    1      rrc 0           rrc 0           rrc 1           rrc 1
//    2      s   0   to 1    s   0   to 0    s   1   to 3    s   1   to 2
//    3      rrc 0           rrc 0           rrc 1           rrc 1        all sums are done
//    4      s   0   to 2    s   0   to 3    s   1   to 0    s   1   to 1
//    5      rc  1           rc  1           rc  0           rc  0
//
// Each exchange is a phase (step.hpp), since it sends what all windows of the one before have
// brought. Its receive lags a window behind its send, so that both directions carry something
// meanwhile, whatever the size of the vector. When n is not a power of two, pairs are formed as in
// recursive_doubling. Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective
// communication operations in MPICH", Int. J. High Perform. Comput. Appl. 19 (2005).
#pragma once

#include "schedule/recursive_doubling_steps.hpp"
#include "schedule/step.hpp"

namespace rondo::detail {

namespace halving {

RONDO_HOST_DEVICE constexpr int halvings(const Schedule& s) {
  const int rounds = doubling::rounds(s.size);
  return s.most_halvings < rounds ? s.most_halvings : rounds;
}

RONDO_HOST_DEVICE constexpr int chunks(const Schedule& s) { return 1 << halvings(s); }

// Of a position that takes part: each round of the reduction is one, and so is each of the
// all-gather.
RONDO_HOST_DEVICE constexpr int exchanges(const Schedule& s) {
  return doubling::rounds(s.size) + halvings(s);
}

RONDO_HOST_DEVICE constexpr int steps(const Schedule& s) {
  if (!doubling::takes_part(s)) return 2;
  return 2 * exchanges(s) + (s.position < doubling::paired(s.size) ? 2 : 0);
}

RONDO_HOST_DEVICE constexpr int phases(const Schedule& s) {
  if (!doubling::takes_part(s)) return 2;
  return exchanges(s) + (s.position < doubling::paired(s.size) ? 2 : 0);
}

// What goes to and from the other one of a pair is a phase of one step, an exchange one of two.
RONDO_HOST_DEVICE constexpr Phase phase(const Schedule& s, int index) {
  if (!doubling::takes_part(s)) return {index, index + 1};
  if (s.position >= doubling::paired(s.size)) return {2 * index, 2 * index + 2};
  if (index == 0) return {0, 1};
  const int first = 2 * index - 1;
  return {first, index == phases(s) - 1 ? first + 1 : first + 2};
}

// Whether two partners compute the same sums, each for itself.
RONDO_HOST_DEVICE constexpr bool partners_sum_alike(const Schedule& s) {
  return halvings(s) < doubling::rounds(s.size);
}

// `step` with the `count` chunks (a power of two) among which chunk `index` is, from a multiple of
// `count` on.
RONDO_HOST_DEVICE constexpr Step with_chunks_of(Step step, int index, int count) {
  step.chunk = index & ~(count - 1);
  step.chunk_count = count;
  return step;
}

RONDO_HOST_DEVICE constexpr Step lagging(Step step) {
  step.lag = 1;
  return step;
}

RONDO_HOST_DEVICE constexpr Step whole(const Schedule& s, Step step) {
  step.chunk_count = chunks(s);
  return step;
}

// One of the two steps of exchange `round` of the reduction.
RONDO_HOST_DEVICE constexpr Step reducing_step(const Schedule& s, int round, bool sends, int mine,
                                               bool for_two) {
  const int rounds = doubling::rounds(s.size);
  const int partner = doubling::partner(s, rounds - 1 - round);
  const bool halves = round < halvings(s);
  const int count = halves ? chunks(s) >> (round + 1) : 1;
  const int mine_is_output = for_two || round > 0 ? kMineIsOutput : 0;
  if (sends) {
    const int verb = kSend | mine_is_output;
    return with_chunks_of({static_cast<std::uint8_t>(verb), 0, kNobody, partner},
                          halves ? mine ^ count : mine, count);
  }
  int verb = kRecvReduceCopy | mine_is_output;
  if (round == rounds - 1) verb |= kFinish;
  if (round == 0 && partner >= doubling::paired(s.size)) verb |= kReceivedIsInput;
  if (!halves && s.position < partner) verb |= kMineFirst;
  return lagging(
      with_chunks_of({static_cast<std::uint8_t>(verb), 0, partner, kNobody}, mine, count));
}

// One of the two steps of exchange `round` of the all-gather.
RONDO_HOST_DEVICE constexpr Step gathering_step(const Schedule& s, int round, bool sends,
                                                int mine) {
  const int partner = doubling::partner(s, doubling::rounds(s.size) - halvings(s) + round);
  const int count = 1 << round;
  if (sends) return with_chunks_of({kSend | kMineIsOutput, 0, kNobody, partner}, mine, count);
  return lagging(with_chunks_of({kRecvCopy, 0, partner, kNobody}, mine ^ count, count));
}

// A step of a position that takes part, without those for its pair.
RONDO_HOST_DEVICE constexpr Step exchange_step(const Schedule& s, int index, bool for_two) {
  const int rounds = doubling::rounds(s.size);
  const int number = for_two ? s.position / 2 : s.position - doubling::paired(s.size) / 2;
  const int mine = number >> (rounds - halvings(s));  // the chunk that it sums up
  const int exchange = index / 2;
  const bool sends = index % 2 == 0;
  return exchange < rounds ? reducing_step(s, exchange, sends, mine, for_two)
                           : gathering_step(s, exchange - rounds, sends, mine);
}

RONDO_HOST_DEVICE constexpr Step step(const Schedule& s, int index) {
  if (!doubling::takes_part(s)) {
    if (index == 0) return whole(s, {kSend, 0, kNobody, s.position + 1});
    return whole(s, {kRecvCopy, 0, s.position + 1, kNobody});
  }
  if (s.position >= doubling::paired(s.size)) return exchange_step(s, index, false);
  if (index == 0) {
    return whole(s, {kRecvReduceCopy | kReceivedIsInput, 0, s.position - 1, kNobody});
  }
  if (index == steps(s) - 1) {
    return whole(s, {kSend | kMineIsOutput, 0, kNobody, s.position - 1});
  }
  return exchange_step(s, index - 1, true);
}

}  // namespace halving

}  // namespace rondo::detail
