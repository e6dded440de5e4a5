#include "engine/pace.hpp"

#include <algorithm>

namespace rondo::detail {
namespace {

// About 100 µs of spinning: longer than a peer needs for a slice, shorter than the scheduler's time
// slice.
constexpr std::uint64_t kSpinRounds = 64;
// Yielding is cheap where there is something else to run, and a sleep may take tens of µs to end.
constexpr std::uint64_t kYieldRounds = 2000;
// In a call with large chunks on a network, transfers take longer than a nap and the training
// program needs the core, so a wait naps after a few rounds.
constexpr std::uint64_t kBulkAwakeRounds = 4;
constexpr auto kShortestNap = std::chrono::microseconds(50);
constexpr auto kLongestNap = std::chrono::microseconds(1000);
// A wait that has slept so often sleeps for longer, where a bell ends the naps: each takes some 10
// to 20 µs of the core.
constexpr std::uint64_t kManyNaps = 40;
constexpr auto kLongestNapWithBell = std::chrono::microseconds(4000);
// How often a wait checks all ranks of this host; it checks the rank waited for each time that it
// reads the clock.
constexpr auto kRollCallInterval = std::chrono::milliseconds(100);

}  // namespace

// Does not spin where spinning would hold up the pump, or a peer that waits for this core.
Pace::Pace(const Surroundings& surroundings)
    : around_(surroundings), spins_(!surroundings.has_pump && !surroundings.crowded) {}

void Pace::begin_call(std::uint64_t chunk_bytes, bool background) {
  background_ = background;
  naps_early_ = around_.naps.length.count() > 0 &&
                (chunk_bytes >= around_.naps.from_chunk_bytes || background);
  call_spin_rounds_ = spins_ && !background ? kSpinRounds : 1;
  call_awake_rounds_ = call_spin_rounds_;
  if (naps_early_) {
    call_awake_rounds_ += kBulkAwakeRounds;
  } else if (!background) {
    call_awake_rounds_ += kYieldRounds;
  }
  begin_wait(false);
}

void Pace::begin_wait(bool core_is_wanted) {
  core_is_wanted_ = (core_is_wanted || around_.short_of_quota) && !around_.has_pump;
  spin_rounds_ = call_spin_rounds_;
  awake_rounds_ = call_awake_rounds_;
  if (!core_is_wanted_) return;
  const bool tries = ++waits_if_wanted_ % kWaitsPerTry == 0;
  spin_rounds_ = tries ? kMostSpinRoundsIfWanted : spin_rounds_if_wanted_;
  if (!spins_ || background_) spin_rounds_ = 0;
  awake_rounds_ = spin_rounds_;
}

void Pace::end_wait(bool slept) {
  if (!core_is_wanted_) return;
  spin_rounds_if_wanted_ = slept ? spin_rounds_if_wanted_ / 2 : kMostSpinRoundsIfWanted;
}

std::chrono::microseconds Pace::nap_after(std::uint64_t naps) const {
  if (naps_early_) return around_.naps.length;
  const bool bell_ends_it = !around_.has_pump && !around_.drives_program;
  if (bell_ends_it && naps >= kManyNaps) return kLongestNapWithBell;
  // A bell ends the nap early, and each look takes time from the threads that compute.
  if (background_ && !around_.has_pump) return kLongestNap;
  // A bell may miss the first nap of a wait, and no other (carrier/bell.hpp).
  if (core_is_wanted_ && naps > 0 && bell_ends_it) return kLongestNap;
  return std::min<std::chrono::microseconds>(
      kLongestNap, kShortestNap * static_cast<int>(std::min<std::uint64_t>(naps + 1, 100)));
}

CallDeadline::Due CallDeadline::due_at(Clock::time_point now) {
  if (!runs_) {
    runs_ = true;
    deadline_ = deadline_after(timeout_, now);
    roll_call_ = now + kRollCallInterval;
  }
  const bool too_late = now >= deadline_;
  const bool roll_call = too_late || now >= roll_call_;
  if (roll_call) roll_call_ = now + kRollCallInterval;
  return {too_late, roll_call};
}

}  // namespace rondo::detail
