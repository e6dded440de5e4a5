#include "carrier/bell.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace rondo::detail {

void Bell::wait_while(std::uint32_t before, std::chrono::microseconds at_most) {
  const timespec timeout{static_cast<time_t>(at_most.count() / 1'000'000),
                         static_cast<long>(at_most.count() % 1'000'000) * 1000};
  // The futex is not a private one: the ranks may be processes. Whatever ends the wait, the caller
  // tests its condition again.
  ::syscall(SYS_futex, &rings_, FUTEX_WAIT, before, &timeout, nullptr, 0);
}

void Bell::wake() {
  std::atomic_ref(rings_).fetch_add(1, std::memory_order_release);
  ::syscall(SYS_futex, &rings_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace rondo::detail
