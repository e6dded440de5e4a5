// The steps of `pairwise`: elements go straight from the rank that has them to the rank that gets
// them.
//
// all_to_all on 4 positions: chunk c of a position's input is for position c, and chunk c of its
// output comes from there. "c 0" is "copy chunk 0 from input to output", "s 1 to 1" is "send chunk
// 1 to position 1", "rc 3" is "receive chunk 3 from position 3". Receives lag one window behind, so
// that each edge already carries the next window while a position receives:
//
//   step   position 0   position 1   position 2   position 3
//    0      c 0          c 1          c 2          c 3
//    1      s 1 to 1     s 2 to 2     s 3 to 3     s 0 to 0
//    2      s 2 to 2     s 3 to 3     s 0 to 0     s 1 to 1
//    3      s 3 to 3     s 0 to 0     s 1 to 1     s 2 to 2
//    4      rc 3         rc 0         rc 1         rc 2       the window before
//    5      rc 2         rc 3         rc 0         rc 1       the window before
//    6      rc 1         rc 2         rc 3         rc 0       the window before
//
// In the k-th of these sends, each position sends to another one: no position gets two chunks at
// once. A gather has the receives of its root only, a scatter its sends only; greetings go the
// other way. A message is one send on one rank, and one receive on another; a sendrecv is made of
// both (engine/send_ahead.hpp; on devices protocol/pairwise.hpp).
#pragma once

#include "base/collective_traits.hpp"
#include "schedule/step.hpp"

namespace rondo::detail {

namespace pairwise {

// The position `distance` after this one, and the one before it.
RONDO_HOST_DEVICE constexpr int after(const Schedule& s, int distance) {
  return (s.position + distance) % s.size;
}
RONDO_HOST_DEVICE constexpr int before(const Schedule& s, int distance) {
  return (s.position + s.size - distance) % s.size;
}

RONDO_HOST_DEVICE constexpr int most_lag(const Schedule& s) {
  return s.collective == Collective::all_to_all ? 1 : 0;
}

RONDO_HOST_DEVICE constexpr Step send(int chunk, int to) { return {kSend, chunk, kNobody, to}; }
RONDO_HOST_DEVICE constexpr Step receive(int chunk, int from, int lag) {
  return {kRecvCopy, chunk, from, kNobody, 1, lag};
}

RONDO_HOST_DEVICE constexpr int steps(const Schedule& s) {
  if (is_message(s.collective)) return 1;
  const bool with_all = s.collective == Collective::all_to_all || s.position == s.root;
  return with_all ? 2 * s.size - 1 : 2;
}

RONDO_HOST_DEVICE constexpr Step step(const Schedule& s, int index) {
  if (s.collective == Collective::send) return send(0, s.to);
  if (s.collective == Collective::recv) return receive(0, s.from, 0);
  const bool gathers = s.collective == Collective::gather;
  const bool scatters = s.collective == Collective::scatter;
  if (s.collective != Collective::all_to_all && s.position != s.root) {
    if (gathers) return index == 0 ? send(s.position, s.root) : recv_greeting(s.root);
    return index == 0 ? send_greeting(s.root) : receive(s.position, s.root, 0);
  }
  if (index == 0) return {kCopy, s.position, kNobody, kNobody};
  if (index < s.size) {
    const int to = after(s, index);
    return gathers ? send_greeting(to) : send(to, to);
  }
  const int from = before(s, index - s.size + 1);
  return scatters ? recv_greeting(from) : receive(from, from, most_lag(s));
}

}  // namespace pairwise

// The steps of `pairwise` alone, for its kernels: the ring's kernels then hold none of them, and
// these hold no others.
struct PairwiseSchedule {
  Schedule schedule;

  [[nodiscard]] RONDO_HOST_DEVICE constexpr int steps() const { return pairwise::steps(schedule); }
  [[nodiscard]] RONDO_HOST_DEVICE constexpr Step step(int index) const {
    return pairwise::step(schedule, index);
  }
  [[nodiscard]] RONDO_HOST_DEVICE constexpr int phases() const { return 1; }
  [[nodiscard]] RONDO_HOST_DEVICE constexpr Phase phase(int /*index*/) const {
    return {0, steps()};
  }
  [[nodiscard]] RONDO_HOST_DEVICE constexpr int most_lag() const {
    return pairwise::most_lag(schedule);
  }
};

}  // namespace rondo::detail
