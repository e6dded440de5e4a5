#include "engine/core_share.hpp"

#include <sys/resource.h>

#include <algorithm>

namespace rondo::detail {
namespace {

constexpr std::chrono::milliseconds kShortestPeriod{100};
constexpr std::chrono::milliseconds kLongestPeriod{1000};
// On a core that nobody else wants, the system itself interrupts a thread less often than this.
constexpr std::chrono::milliseconds kBetweenInterruptions{20};

// Where ranks share cores: from how much time in yields on a thread judges, and how far it looks
// back.
constexpr std::chrono::milliseconds kLeastYieldTime{20};
constexpr std::chrono::milliseconds kMostYieldTime{80};

}  // namespace

bool CoreShare::note_shared_yield(Clock::duration took) {
  yield_time_ += took;
  if (took > kLongYield) long_yield_time_ += took;
  if (yield_time_ > kMostYieldTime) {
    yield_time_ /= 2;
    long_yield_time_ /= 2;
  }
  // Three quarters of the time; in integers, since a call has its caller's floating-point state.
  return yield_time_ >= kLeastYieldTime && 4 * long_yield_time_ >= 3 * yield_time_;
}

void CoreShare::note_long_yield(Clock::time_point now, std::int64_t interruptions) {
  if (interruptions == before_yields_) return;
  before_yields_ = interruptions;
  lose_slices(now, interruptions);
}

void CoreShare::lose_slices(Clock::time_point now, std::int64_t interruptions) {
  counted_ = interruptions;
  counted_at_ = now;
  const bool again = period_.count() > 0 && now < until_ + period_;
  period_ = again ? std::min(2 * period_, kLongestPeriod) : kShortestPeriod;
  until_ = now + period_;
  wanted_ = true;
  yield_time_ = long_yield_time_ = {};
}

void CoreShare::try_again(Clock::time_point now, std::int64_t interruptions) {
  if (!is_due(now)) return;
  wanted_ = interruptions - counted_ >= (now - counted_at_) / kBetweenInterruptions;
  counted_ = interruptions;
  counted_at_ = now;
  if (wanted_) until_ = now + period_;
}

CoreShare& core_of_this_thread() {
  thread_local CoreShare core;
  return core;
}

std::int64_t times_interrupted() {
  rusage usage{};
  return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

}  // namespace rondo::detail
