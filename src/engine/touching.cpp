#include "engine/touching.hpp"

#include "schedule/slicing.hpp"

namespace rondo::detail {
namespace {

// How long a failed call waits for ranks of other processes that may touch its buffers.
constexpr auto kPatience = std::chrono::seconds(2);
// How long until it tries again to make them private.
constexpr auto kRetry = std::chrono::milliseconds(20);

}  // namespace

DirectCall direct_part_of(const Call& call, int size) {
  return {call.collective, size, call.root, call.count, granule_elems(element_bytes(call))};
}

void Touching::begin() {
  presence(wiring_.rank).begin_touching(sequence_);
  AbortBoard& board = wiring_.links.segment->board();
  if (board.is_clear_in_order()) return;
  presence(wiring_.rank).renounce_touching(sequence_);
  // The rank that ends the communicator may still be writing why.
  waiter_.wait(wiring_.rank, [&] { return board.raised(); });
  throw Failure{Cause::aborted, wiring_.rank};
}

void Touching::end() {
  presence(wiring_.rank).end_touching(sequence_);
  progress_.ranks_done = 1;
  ring_all(wiring_.links.bells);
}

void Touching::wait_for_all() {
  for (const int rank : wiring_.links.ranks_sharing) {
    if (rank == wiring_.rank) continue;
    waiter_.wait(rank, [&] { return presence(rank).has_touched(sequence_); });
    ++progress_.ranks_done;
  }
}

bool Touching::anyone_touches() const {
  for (const int rank : wiring_.links.ranks_sharing) {
    if (rank == wiring_.rank || !presence(rank).is_touching(sequence_)) continue;
    if (!wiring_.waiting.peers.ended(rank)) return true;
  }
  return false;
}

void Touching::renounce() {
  if (!presence(wiring_.rank).is_touching(sequence_)) return;
  presence(wiring_.rank).renounce_touching(sequence_);
  ring_all(wiring_.links.bells);  // of those who wait for that in withdraw()
}

void Touching::withdraw() {
  wiring_.links.segment->board().order_after_raise();
  const Reach& reach = wiring_.links.reach;
  Bell& bell = wiring_.links.segment->bell(wiring_.rank);
  const DirectCall part = direct_part_of(*call_, wiring_.size);
  const std::size_t element = element_bytes(*call_);
  Clock::time_point deadline = Clock::now() + kPatience;
  bool is_private = false;
  while (anyone_touches() && !is_private) {
    bell.sleep([this] { return !anyone_touches(); }, std::chrono::milliseconds(1));
    if (reach.one_process() || Clock::now() < deadline) continue;
    is_private = reach.make_private(call_->in, part.input(wiring_.rank).count * element) &&
                 reach.make_private(call_->out, part.output(wiring_.rank).count * element);
    // There was no memory for it, or another call uses the arena.
    if (!is_private) deadline = Clock::now() + kRetry;
  }
}

}  // namespace rondo::detail
