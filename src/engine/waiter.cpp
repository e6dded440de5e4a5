#include "engine/waiter.hpp"

#include <sched.h>

#include <algorithm>

namespace rondo::detail {
namespace {

// Without a pause between them, which takes longer than a line takes to come from another core.
constexpr int kEagerLooks = 64;
constexpr int kSpinsPerRound = 32;
// About 100 µs of spinning: longer than a peer needs for a slice, shorter than a time slice.
constexpr std::uint64_t kSpinRounds = 64;
constexpr std::uint64_t kRoundsPerClock = 64;
constexpr auto kShortestNap = std::chrono::microseconds(50);
constexpr auto kLongestNap = std::chrono::microseconds(1000);
// Thirty years: as good as no deadline, and no overflow when it is added to the clock.
constexpr auto kLongestTimeout = std::chrono::hours(24 * 365 * 30);

// Not when each look keeps someone from working: the pump, or a peer that waits for this core.
bool looks_at_once(const Company& company) { return company.pump == nullptr && !company.crowded; }

}  // namespace

Waiter::Waiter(const Company& company)
    : company_(company),
      board_(company.segment->board()),
      eager_looks_(looks_at_once(company) ? kEagerLooks : 1),
      spins_per_round_(looks_at_once(company) ? kSpinsPerRound : 1),
      spin_rounds_(company.crowded ? 1 : kSpinRounds) {}

void Waiter::begin_call(const Signature& signature, std::chrono::milliseconds timeout) {
  signature_ = signature;
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

bool Waiter::someone_is_in_another_call() {
  for (const int rank : *company_.ranks_sharing) {
    const auto call = company_.segment->presence(rank).call(signature_.sequence);
    if (!call || *call == signature_) continue;
    other_call_ = {WaitResult::other_call, rank, call};
    return true;
  }
  return false;
}

std::optional<WaitResult> Waiter::look_around(std::uint64_t round, int peer) {
  if (company_.pump != nullptr) company_.pump->progress();
  if (board_.raised()) return WaitResult::aborted;
  if (round < spin_rounds_) return std::nullopt;
  const bool sleeps = round >= spin_rounds_ + kYieldRounds;
  if (sleeps || round % kRoundsPerClock == 0) {
    if (someone_is_in_another_call()) return WaitResult::other_call;
    if (company_.peers->ended(peer)) return WaitResult::peer_ended;
    if (past_deadline()) return WaitResult::timed_out;
  }
  return std::nullopt;
}

void Waiter::yield() { ::sched_yield(); }

std::chrono::microseconds Waiter::nap(std::uint64_t round) const {
  const std::uint64_t naps = round - spin_rounds_ - kYieldRounds;
  return std::min<std::chrono::microseconds>(
      kLongestNap, kShortestNap * static_cast<int>(std::min<std::uint64_t>(naps + 1, 100)));
}

}  // namespace rondo::detail
