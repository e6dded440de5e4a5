#include "carrier/reserving_turn.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace rondo::detail {

bool ReservingTurn::take(std::chrono::nanoseconds patience) {
  constexpr std::chrono::microseconds kBetweenLooks{100};
  const auto give_up = std::chrono::steady_clock::now() + patience;
  for (;;) {
    std::uint32_t nobody = 0;
    if (std::atomic_ref(taken_).compare_exchange_strong(nobody, 1, std::memory_order_acquire,
                                                        std::memory_order_relaxed)) {
      return true;
    }
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

void ReservingTurn::give_back() { std::atomic_ref(taken_).store(0, std::memory_order_release); }

}  // namespace rondo::detail
