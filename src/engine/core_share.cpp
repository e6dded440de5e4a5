#include "engine/core_share.hpp"

#include <sys/resource.h>

#include <algorithm>

namespace rondo::detail {
namespace {

constexpr std::chrono::milliseconds kShortestPeriod{100};
constexpr std::chrono::milliseconds kLongestPeriod{1000};
// On a core that nobody else wants, the system itself interrupts a thread less often than this.
constexpr std::chrono::milliseconds kBetweenInterruptions{20};

// Of yields, where ranks share cores: the least that is judged, and what is looked back on.
constexpr std::chrono::milliseconds kLeastYields{20};
constexpr std::chrono::milliseconds kMostYields{80};

}  // namespace

bool CoreShare::note_shared_yield(Clock::duration took) {
  yields_ += took;
  if (took > kLongYield) long_yields_ += took;
  if (yields_ > kMostYields) {
    yields_ /= 2;
    long_yields_ /= 2;
  }
  return yields_ >= kLeastYields && 4 * long_yields_ >= 3 * yields_;
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
  yields_ = long_yields_ = {};
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
