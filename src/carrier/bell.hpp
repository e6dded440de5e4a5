// A bell wakes a rank of the same host that sleeps. It lies in memory that the ranks share; zeroed
// memory is the bell of a rank that is awake.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

namespace rondo::detail {

class alignas(128) Bell {
 public:
  // The owner alone calls this. It sleeps until someone rings, `ready()` is true, or `at_most` has
  // passed.
  //
  // The rank that makes `ready()` true calls ring() after that, without a fence between the two: a
  // fence for every slot would cost more than a late wake of the few ranks that sleep. So ring()
  // may read `asleep_` before the owner has set it, while the owner still finds `ready()` false;
  // then only `at_most` ends the sleep, so it must be short.
  template <class Ready>
  void sleep(Ready ready, std::chrono::microseconds at_most) {
    const std::uint32_t before = std::atomic_ref(rings_).load(std::memory_order_relaxed);
    std::atomic_ref(asleep_).store(1, std::memory_order_seq_cst);
    if (!ready()) wait_while(before, at_most);
    std::atomic_ref(asleep_).store(0, std::memory_order_relaxed);
  }

  // Any rank calls this after a store that may make the owner's `ready()` true.
  void ring() {
    if (std::atomic_ref(asleep_).load(std::memory_order_relaxed) != 0) wake();
  }

 private:
  void wait_while(std::uint32_t before, std::chrono::microseconds at_most);
  void wake();

  // Counts wakes: one between the owner's load of it and its sleep ends that sleep at once.
  // Relaxed, since the data that the owner waits for is read with its own acquire.
  std::uint32_t rings_ = 0;
  // Written by the owner, read by those who might ring.
  std::uint32_t asleep_ = 0;
};

inline void ring_all(const std::vector<Bell*>& bells) {
  for (Bell* bell : bells) {
    if (bell != nullptr) bell->ring();
  }
}

}  // namespace rondo::detail
