#include "engine/waiter.hpp"

#include <sched.h>

#include <utility>

#include "base/time_slices.hpp"
#include "plan/call_signature.hpp"

namespace rondo::detail {
namespace {

const std::function<void()>* program_driver(const Wiring& wiring) {
  const bool pump_drives_it = wiring.links.pump != nullptr && wiring.links.pump->drives_mpi();
  return wiring.waiting.drive_program && !pump_drives_it ? &wiring.waiting.drive_program : nullptr;
}

}  // namespace

Waiter::Waiter(Wiring& wiring)
    : pump_(wiring.links.pump.get()),
      drive_program_(program_driver(wiring)),
      board_(wiring.links.segment->board()),
      bell_(wiring.links.segment->bell(wiring.rank)),
      ranks_(static_cast<std::size_t>(wiring.size)),
      pace_({pump_ != nullptr, wiring.waiting.crowded, wiring.waiting.naps,
             wiring.waiting.short_of_quota, drive_program_ != nullptr}),
      short_of_quota_(wiring.waiting.short_of_quota),
      learns_of_core_(pump_ == nullptr),
      shares_core_(wiring.waiting.crowded),
      eager_looks_(pace_.eager_looks()),
      looks_per_round_(pace_.looks_per_round()),
      ends_(wiring) {}

void Waiter::begin_call(const Signature& signature, std::chrono::milliseconds timeout,
                        bool background) {
  pace_.begin_call(bytes_of(signature) / ranks_, background);
  deadline_.begin_call(timeout);
  ends_.begin_call(signature);
}

void Waiter::begin_message(const Signature& signature, std::chrono::milliseconds timeout,
                           bool background) {
  begin_call(signature, timeout, background);
  ends_.begin_message();
}

void Waiter::begin_rounds_on_wanted_core() {
  CoreShare& core = core_of_this_thread();
  const Clock::time_point now = Clock::now();
  if (core.is_due(now)) {
    if (shares_core_) {
      core.assume_free();
    } else {
      core.try_again(now, times_interrupted());
    }
    if (!core.is_wanted()) give_back_short_slices();
  }
  pace_.begin_wait(core.is_wanted());
}

void Waiter::yield() {
  if (!learns_of_core_) {
    ::sched_yield();
    return;
  }
  CoreShare& core = core_of_this_thread();
  const bool first = !std::exchange(has_yielded_, true);
  if (first && !shares_core_) core.begin_yields(times_interrupted());
  // Since the last yield ended, the wait has looked for a moment.
  const Clock::time_point before = yield_ended_ ? *yield_ended_ : Clock::now();
  ::sched_yield();
  yield_ended_ = Clock::now();
  if (!judge_yield(core, *yield_ended_ - before, *yield_ended_)) return;
  borrow_short_slices();
  pace_.begin_wait(true);
}

bool Waiter::judge_yield(CoreShare& core, Clock::duration took, Clock::time_point now) const {
  if (shares_core_) {
    if (!core.note_shared_yield(took)) return false;
    core.lose_slices(now, times_interrupted());
    return true;
  }
  if (took <= CoreShare::kLongYield) return false;
  core.note_long_yield(now, times_interrupted());
  return core.is_wanted();
}

// A rank may have ended the communicator and then left since this rank last looked at the board;
// the board then has the real cause. That rank raised the board before it left, and what was found
// was found by a load with acquire: in that case board_.raised() is true here.
Failure Waiter::first_cause(const Failure& found) const {
  return board_.raised() ? Failure{Cause::aborted, found.peer} : found;
}

std::optional<Failure> Waiter::look_around(std::uint64_t round, int peer) {
  const bool moved = pump_ != nullptr && pump_->progress();
  if (board_.raised()) return Failure{Cause::aborted, peer};
  if (!pace_.reads_clock(round)) return std::nullopt;
  if (drive_program_ != nullptr) (*drive_program_)();
  if (pace_.compares_calls(round)) {
    const bool at_rest = pace_.rest_after(round) == Pace::Rest::sleep && !moved;
    if (const auto failure = ends_.find_other_call(peer, at_rest)) return first_cause(*failure);
  }
  const Clock::time_point now = Clock::now();
  yield_ended_.reset();
  if (!waits_since_) waits_since_ = now;
  const CallDeadline::Due due = deadline_.due_at(now);
  if (const auto failure = ends_.find_missing(peer, due.roll_call, *waits_since_)) {
    return first_cause(*failure);
  }
  if (due.too_late) return Failure{Cause::timed_out, peer};
  return std::nullopt;
}

}  // namespace rondo::detail
