// The steps of `tree`: as few hops as ⌈log2 n⌉, for any number of ranks, where latency decides.
//
// broadcast and reduce go along one binomial tree. A position's number in the tree, v, is its
// distance from the root; its parent is v without its lowest bit, and its children are v + 2^k for
// each 2^k below that bit (for the root, below n). n = 6, root 0: 0 has the children 4, 2 and 1; 4
// has 5, and 2 has 3.
//
// In a broadcast a position receives each slice from its parent and sends it to its children, first
// to the one with the largest subtree. Then greetings go the other way (step.hpp): up the tree,
// each after those of its children, so that at last the root has heard of all. In a reduce the
// slices go up, and the greetings down.
//
// all_gather and reduce_scatter go along n such trees at once, one for each chunk, and send what
// several of them have for the same position in one message. In round k of an all_gather position p
// has chunks p to p + 2^k − 1, sends them to p − 2^k, and receives as many from p + 2^k; in the
// last round, no more than are missing. "s 0-1 to 2" is "send chunks 0 and 1 to position 2", c
// copy, rc recv-copy; numbers begin again at 0 after the last. n = 4:
//
//   step   position 0      position 1      position 2      position 3
//    0      cs  0   to 3    cs  1   to 0    cs  2   to 1    cs  3   to 2
//    1      rc  1           rc  2           rc  3           rc  0
//    2      s   0-1 to 2    s   1-2 to 3    s   2-3 to 0    s   3-0 to 1
//    3      rc  2-3         rc  3-0         rc  0-1         rc  1-2
//
// A reduce_scatter is the same backwards, in time and direction: it begins with the last round, in
// which p sends p + 2^k its elements of the chunks that it would receive from there, and adds what
// comes from p − 2^k to its own. Chunks that go round the end of the vector take two steps, and so
// do chunks of which some are a rank's own elements and others sums (in the second round of n that
// is no power of two).
//
// A round needs what all windows of the one before have brought, so it is a phase (step.hpp). Its
// receives lag a window behind, and it has up to kMostPieces sends along one edge, so a FIFO holds
// 2 kMostPieces windows.
// Sources: J. Bruck et al., "Efficient algorithms for all-to-all communications in multiport
// message-passing systems", IEEE Trans. Parallel Distrib. Syst. 8 (1997); S. Jeaugey, "PAT: a new
// algorithm for all-gather and reduce-scatter operations at scale", arXiv:2506.20252 (2025).
#pragma once

#include "schedule/ring_steps.hpp"
#include "schedule/step.hpp"

namespace rondo::detail {

namespace tree {

// The smallest k with 2^k >= size.
RONDO_HOST_DEVICE constexpr int rounds(int size) {
  int rounds = 0;
  while ((1 << rounds) < size) ++rounds;
  return rounds;
}

// A position's number in the tree.
RONDO_HOST_DEVICE constexpr int distance_from_root(const Schedule& s) {
  return ring::wrap(s.position - s.root, s.size);
}
RONDO_HOST_DEVICE constexpr int position_at(const Schedule& s, int distance) {
  return ring::wrap(s.root + distance, s.size);
}
RONDO_HOST_DEVICE constexpr int lowest_bit(int number) { return number & -number; }

RONDO_HOST_DEVICE constexpr int parent(const Schedule& s) {
  const int v = distance_from_root(s);
  return position_at(s, v - lowest_bit(v));
}

// Children with numbers v + 2^k, for k from 0 to children() - 1; all of them exist.
RONDO_HOST_DEVICE constexpr int children_of(int v, int size) {
  int children = 0;
  while ((v == 0 || (1 << children) < lowest_bit(v)) && v + (1 << children) < size) ++children;
  return children;
}
RONDO_HOST_DEVICE constexpr int children(const Schedule& s) {
  return children_of(distance_from_root(s), s.size);
}
RONDO_HOST_DEVICE constexpr int child(const Schedule& s, int k) {
  return position_at(s, distance_from_root(s) + (1 << k));
}

// From the root to all: phase 0 brings the elements down, phase 1 the greetings up.
RONDO_HOST_DEVICE constexpr int down_steps(const Schedule& s) {
  const int sends = children(s);
  return sends == 0 ? 1 : sends;
}

RONDO_HOST_DEVICE constexpr Step broadcast_step(const Schedule& s, int index) {
  const int all = children(s);
  const int down = down_steps(s);
  const bool is_root = s.position == s.root;
  if (index < down) {
    if (all == 0) return {kRecvCopy, 0, parent(s), kNobody};
    const int to = child(s, all - 1 - index);
    if (index > 0) return {kSend | kMineIsOutput, 0, kNobody, to};
    return is_root ? Step{kCopySend, 0, kNobody, to} : Step{kRecvCopySend, 0, parent(s), to};
  }
  const int greeting = index - down;
  return greeting < all ? recv_greeting(child(s, greeting)) : send_greeting(parent(s));
}

// Greetings to the children, which they need only in the end; their elements; then, on all but the
// root, the parent's greeting.
RONDO_HOST_DEVICE constexpr Step reduce_step(const Schedule& s, int index) {
  const int all = children(s);
  const bool is_root = s.position == s.root;
  if (index < all) return send_greeting(child(s, index));
  const int k = index - all;
  if (all == 0 && k == 0) return {kSend, 0, kNobody, parent(s)};
  if (k >= all) return recv_greeting(parent(s));
  const bool from_leaf = children_of(distance_from_root(s) + (1 << k), s.size) == 0;
  const bool last = k == all - 1;
  int verb = kRecv | kReduce | (from_leaf ? kReceivedIsInput : 0) | (k > 0 ? kMineIsOutput : 0);
  verb |= last && !is_root ? kSend : kCopy;
  if (last && is_root) verb |= kFinish;
  return {static_cast<std::uint8_t>(verb), 0, child(s, k), last && !is_root ? parent(s) : kNobody};
}

// How many chunks round k exchanges.
RONDO_HOST_DEVICE constexpr int chunks_in_round(int k, int size) {
  const int distance = 1 << k;
  return distance < size - distance ? distance : size - distance;
}

// In a reduce_scatter: of how many chunks, from its own on, a position has sums before round k.
RONDO_HOST_DEVICE constexpr int summed_before(int k, int size) {
  const int last = rounds(size) - 1;  // which comes first
  if (k == last) return 0;
  const int in_last = chunks_in_round(last, size);
  const int in_next = k == last - 1 ? 0 : chunks_in_round(last - 1, size);
  return in_last > in_next ? in_last : in_next;
}

// Chunks of a round that are side by side in the vector, and of one kind, elements or sums.
struct Piece {
  int first = 0;  // counted from the round's first chunk
  int count = 0;
};
// At most two cuts: where the vector ends, and where sums end.
inline constexpr int kMostPieces = 3;
// The slots that a FIFO needs for that, and the window where one has so many or more.
inline constexpr std::uint32_t kLeastSlots = 2 * kMostPieces;
RONDO_HOST_DEVICE constexpr std::uint64_t window_for_pieces(std::uint32_t slots) {
  return slots / kLeastSlots;
}

// Piece `number` of the chunks that a position gets in round k, the first of which is
// `begin_chunk`; without chunks if there are fewer pieces.
RONDO_HOST_DEVICE constexpr Piece piece_of(const Schedule& s, int k, int begin_chunk, int number) {
  const int chunks = chunks_in_round(k, s.size);
  const int wraps_at = s.size - begin_chunk;
  int sums_end = chunks;
  if (s.collective == Collective::reduce_scatter) {
    const int summed = summed_before(k, s.size);
    sums_end = summed < (2 << k) ? summed % (1 << k) : chunks;
  }
  int first = 0;
  for (int piece = 0;; ++piece) {
    int end = chunks;
    if (wraps_at > first && wraps_at < end) end = wraps_at;
    if (sums_end > first && sums_end < end) end = sums_end;
    if (piece == number || end == chunks) {
      return piece == number ? Piece{first, end - first} : Piece{};
    }
    first = end;
  }
}
RONDO_HOST_DEVICE constexpr int pieces_in(const Schedule& s, int k, int begin_chunk) {
  int pieces = 0;
  while (piece_of(s, k, begin_chunk, pieces).count > 0) ++pieces;
  return pieces;
}

// One round of an all_gather or a reduce_scatter: which chunks go out, where to, and so on.
struct Round {
  int k = 0;
  int to = 0;
  int from = 0;
  int sent = 0;      // the first chunk that goes out
  int received = 0;  // the first that comes
};
RONDO_HOST_DEVICE constexpr Round round_of(const Schedule& s, int index) {
  Round round;
  const bool gathers = s.collective == Collective::all_gather;
  round.k = gathers ? index : rounds(s.size) - 1 - index;
  const int after = ring::wrap(s.position + (1 << round.k), s.size);
  const int before = ring::wrap(s.position - (1 << round.k), s.size);
  round.to = gathers ? before : after;
  round.from = gathers ? after : before;
  round.sent = gathers ? s.position : after;
  round.received = gathers ? after : s.position;
  return round;
}
RONDO_HOST_DEVICE constexpr int steps_in(const Schedule& s, const Round& round) {
  return pieces_in(s, round.k, round.sent) + pieces_in(s, round.k, round.received);
}

RONDO_HOST_DEVICE constexpr Step with_chunks(Step step, int first, const Piece& piece, int size) {
  step.chunk = ring::wrap(first + piece.first, size);
  step.chunk_count = piece.count;
  return step;
}

RONDO_HOST_DEVICE constexpr Step send_step(const Schedule& s, const Round& round, int number) {
  const Piece piece = piece_of(s, round.k, round.sent, number);
  int verb = kSend | kMineIsOutput;
  if (s.collective == Collective::all_gather) {
    if (round.k == 0) verb = kCopySend;
  } else if ((1 << round.k) + piece.first >= summed_before(round.k, s.size)) {
    verb = kSend;
  }
  return with_chunks({static_cast<std::uint8_t>(verb), 0, kNobody, round.to}, round.sent, piece,
                     s.size);
}

RONDO_HOST_DEVICE constexpr Step recv_step(const Schedule& s, const Round& round, int number) {
  const Piece piece = piece_of(s, round.k, round.received, number);
  int verb = kRecvCopy;
  if (s.collective == Collective::reduce_scatter) {
    const int summed = summed_before(round.k, s.size);
    verb = kRecvReduceCopy | (piece.first < summed ? kMineIsOutput : 0) |
           ((1 << round.k) + piece.first >= summed ? kReceivedIsInput : 0) |
           (round.k == 0 ? kFinish : 0);
  }
  Step step = with_chunks({static_cast<std::uint8_t>(verb), 0, round.from, kNobody}, round.received,
                          piece, s.size);
  step.lag = 1;
  return step;
}

RONDO_HOST_DEVICE constexpr bool goes_along_one_tree(const Schedule& s) {
  return s.collective == Collective::broadcast || s.collective == Collective::reduce;
}

RONDO_HOST_DEVICE constexpr int phases(const Schedule& s) {
  if (s.collective == Collective::broadcast) return 2;
  return s.collective == Collective::reduce ? 1 : rounds(s.size);
}

RONDO_HOST_DEVICE constexpr int steps(const Schedule& s) {
  const bool is_root = s.position == s.root;
  if (s.collective == Collective::broadcast) {
    return down_steps(s) + children(s) + (is_root ? 0 : 1);
  }
  if (s.collective == Collective::reduce) {
    return 2 * children(s) + (is_root ? 0 : 1) + (children(s) == 0 ? 1 : 0);
  }
  int steps = 0;
  for (int index = 0; index < rounds(s.size); ++index) steps += steps_in(s, round_of(s, index));
  return steps;
}

RONDO_HOST_DEVICE constexpr Phase phase(const Schedule& s, int index) {
  if (s.collective == Collective::broadcast) {
    return index == 0 ? Phase{0, down_steps(s)} : Phase{down_steps(s), steps(s)};
  }
  if (s.collective == Collective::reduce) return {0, steps(s)};
  int first = 0;
  for (int earlier = 0; earlier < index; ++earlier) first += steps_in(s, round_of(s, earlier));
  return {first, first + steps_in(s, round_of(s, index))};
}

RONDO_HOST_DEVICE constexpr Step step(const Schedule& s, int index) {
  if (s.collective == Collective::broadcast) return broadcast_step(s, index);
  if (s.collective == Collective::reduce) return reduce_step(s, index);
  int number = 0;
  Round round = round_of(s, number);
  while (index >= steps_in(s, round)) {
    index -= steps_in(s, round);
    round = round_of(s, ++number);
  }
  const int sends = pieces_in(s, round.k, round.sent);
  return index < sends ? send_step(s, round, index) : recv_step(s, round, index - sends);
}

// The sums of a reduce_scatter, and of a reduce's positions with several children, need memory that
// the output does not have.
RONDO_HOST_DEVICE constexpr bool needs_scratch(const Schedule& s) {
  if (s.collective == Collective::reduce_scatter) return true;
  return s.collective == Collective::reduce && s.position != s.root && children(s) > 1;
}

}  // namespace tree

}  // namespace rondo::detail
