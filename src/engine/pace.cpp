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
  spin_rounds_ = spins_ && !background ? kSpinRounds : 1;
  awake_rounds_ = spin_rounds_;
  if (naps_early_) {
    awake_rounds_ += kBulkAwakeRounds;
  } else if (!background) {
    awake_rounds_ += kYieldRounds;
  }
}

std::chrono::microseconds Pace::nap_after(std::uint64_t round) const {
  if (naps_early_) return around_.naps.length;
  // A bell ends the nap early, and each look takes time from the threads that compute.
  if (background_ && !around_.has_pump) return kLongestNap;
  const std::uint64_t naps = round - awake_rounds_;
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
