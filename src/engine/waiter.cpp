#include "engine/waiter.hpp"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace rondo::detail {
namespace {

constexpr int kSpinsPerRound = 32;
// About 100 µs of spinning: longer than a peer needs for a slice, shorter than a time slice.
constexpr std::uint64_t kSpinRounds = 64;
constexpr std::uint64_t kYieldRounds = 2000;
constexpr std::uint64_t kRoundsPerClock = 64;
constexpr auto kShortestSleep = std::chrono::microseconds(20);
// Thirty years: as good as no deadline, and no overflow when it is added to the clock.
constexpr auto kLongestTimeout = std::chrono::hours(24 * 365 * 30);
constexpr auto kLongestSleep = std::chrono::microseconds(500);

}  // namespace

Waiter::Waiter(AbortBoard& board, const PeerWatch& peers, Pump* pump, bool crowded)
    : board_(board),
      peers_(peers),
      pump_(pump),
      spins_per_round_(pump != nullptr ? 1 : kSpinsPerRound),
      spin_rounds_(crowded ? 1 : kSpinRounds) {}

void Waiter::begin_call(std::chrono::milliseconds timeout) {
  timeout_ = std::min<std::chrono::milliseconds>(timeout, kLongestTimeout);
  clock_runs_ = false;
}

bool Waiter::past_deadline() {
  const auto now = std::chrono::steady_clock::now();
  if (!clock_runs_) {
    clock_runs_ = true;
    deadline_ = now + timeout_;
  }
  return now >= deadline_;
}

std::optional<WaitResult> Waiter::between_spins(std::uint64_t round, int peer) {
  if (pump_ != nullptr) pump_->progress();
  if (board_.raised()) return WaitResult::aborted;
  if (round < spin_rounds_) return std::nullopt;
  const bool sleeps = round >= spin_rounds_ + kYieldRounds;
  if (sleeps || round % kRoundsPerClock == 0) {
    if (peers_.ended(peer)) return WaitResult::peer_ended;
    if (past_deadline()) return WaitResult::timed_out;
  }
  if (!sleeps) {
    ::sched_yield();
    return std::nullopt;
  }
  const std::uint64_t slept = (round - spin_rounds_ - kYieldRounds) / 16;
  std::this_thread::sleep_for(std::min<std::chrono::microseconds>(
      kLongestSleep, kShortestSleep * static_cast<int>(std::min<std::uint64_t>(slept + 1, 100))));
  return std::nullopt;
}

}  // namespace rondo::detail
