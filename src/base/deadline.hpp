// Deadlines, computed from timeouts.
#pragma once

#include <algorithm>
#include <chrono>

namespace rondo::detail {

using Clock = std::chrono::steady_clock;

// Thirty years: as good as no deadline, and no overflow when it is added to the clock.
inline constexpr auto kLongestTimeout = std::chrono::hours(24 * 365 * 30);

inline Clock::time_point deadline_after(std::chrono::milliseconds timeout,
                                        Clock::time_point now = Clock::now()) {
  return now + std::min<std::chrono::milliseconds>(timeout, kLongestTimeout);
}

}  // namespace rondo::detail
