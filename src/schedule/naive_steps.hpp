// The steps of `naive`.
//
// All data goes to position 0 and then back, along one edge each way between 0 and each other
// position. Both edges carry something in every call: a position that has no data to send sends a
// greeting.
#pragma once

#include "schedule/step.hpp"

namespace rondo::detail {

namespace naive {

// Position 0 reduces the elements of all others, one position after the other.
RONDO_HOST_DEVICE constexpr Step accumulate_step(int chunk, int peer, int size) {
  int verb = kRecvReduceCopy | kReceivedIsInput;
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
    default:  // goes pairwise
      return 0;
  }
}

// The number `index` of all numbers without `skipped`, counted from 0.
RONDO_HOST_DEVICE constexpr int other_than(int index, int skipped) {
  return index < skipped ? index : index + 1;
}

// The root, if it is not position 0; else `size`, which is no position. In a broadcast, position 0
// receives greetings from all other positions but this one; in a reduce, it sends greetings to all
// but this one.
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
    default:  // never: the other collectives go by pairwise
      return {};
  }
}

// Step `index` of a position other than 0: it sends to position 0, then receives from there; a
// greeting where there is no data. A Step is {what, chunk, from, to}.
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
    default:  // never: the other collectives go by pairwise
      return {};
  }
}

RONDO_HOST_DEVICE constexpr Step step(const Schedule& s, int index) {
  return s.position == 0 ? centre_step(s, index) : outer_step(s, index);
}

}  // namespace naive

}  // namespace rondo::detail
