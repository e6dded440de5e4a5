#include "engine/confirmation.hpp"

#include "base/index.hpp"
#include "engine/wait_ends.hpp"

namespace rondo::detail {

void Confirmation::confirm(std::uint64_t sequence) {
  wiring_.links.segment->presence(wiring_.rank).confirm(sequence);
  ring_all(wiring_.links.bells);
  if (wiring_.links.pump != nullptr) wiring_.links.pump->notices().tell_confirmed(sequence);
}

bool Confirmation::look_for_confirmation() {
  const std::uint64_t sequence = open_->call.sequence;
  if (!open_->by_message)
    return wiring_.links.segment->presence(open_->confirmer).has_confirmed(sequence);
  wiring_.links.pump->notices().look_for_confirmations();
  return wiring_.links.pump->notices().has_confirmed(open_->confirmer, sequence);
}

void Confirmation::confirm_before(const Schedule& schedule, const Signature& signature,
                                  Waiter& waiter) {
  const int position = schedule.confirming_position();
  if (position == kNobody) {
    forget();
    return;
  }
  // Receives confirmations for which this rank did not wait, so that MPI does not have to keep
  // them.
  if (!open_ && wiring_.links.pump != nullptr)
    wiring_.links.pump->notices().look_for_confirmations();
  if (position == schedule.position) {
    // Every rank has begun this call, and so has ended the call before it.
    forget();
    confirm(signature.sequence);
    return;
  }
  try {
    if (open_) waiter.wait(open_->confirmer, [this] { return look_for_confirmation(); });
  } catch (Failure& failure) {
    failure.unconfirmed = open_->call;
    throw;
  }
  const Index index(position);
  open_ = {signature, waiter.timeout(), wiring_.topology.ring[index],
           wiring_.links.bells[index] == nullptr};
  if (open_->by_message) {
    wiring_.links.pump->notices().expect_confirmation(open_->confirmer, signature.sequence);
  }
}

// Does not use a Waiter: a Waiter tells other ranks which call this rank is in, and this rank is in
// none.
void Confirmation::confirm_last() {
  if (!open_) return;
  Pump* pump = wiring_.links.pump.get();
  if (pump != nullptr && (!pump->can_be_driven() || !pump->objection_to_this_thread().empty())) {
    pump = nullptr;
  }
  if (open_->by_message && pump == nullptr) return;
  AbortBoard& board = wiring_.links.segment->board();
  const auto over = [&] {
    if (pump != nullptr) pump->notices().look_for_abort();
    if (wiring_.waiting.drive_program) wiring_.waiting.drive_program();
    return board.raised() || look_for_confirmation();
  };
  const Clock::time_point since = Clock::now();
  const Clock::time_point deadline = deadline_after(open_->timeout);
  WaitEnds ends(wiring_);
  ends.begin_call(open_->call);
  constexpr auto kNap = std::chrono::milliseconds(1);
  while (!over()) {
    std::optional<Failure> failure = ends.find_missing(open_->confirmer, true, since);
    if (!failure && Clock::now() >= deadline) {
      failure = Failure{Cause::timed_out, open_->confirmer};
    }
    // Looks once more: that rank may have confirmed before it left; or it has ended the
    // communicator, and the abort board has the cause, which the caller reports.
    if (failure && over()) return;
    if (failure) {
      failure->unconfirmed = open_->call;
      throw Failure(*failure);
    }
    wiring_.links.segment->bell(wiring_.rank).sleep(over, kNap);
  }
}

}  // namespace rondo::detail
