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
  // The naps of one wait of the owner, which alone makes this.
  //
  // The rank that makes `ready()` true calls ring() after that, without a fence between the two: a
  // fence for every slot would cost more than a late wake of the few ranks that sleep. So ring()
  // may read `asleep_` before the owner has set it, while the owner still finds `ready()` false;
  // then only `at_most` ends the nap. That can be so in the first nap only: `asleep_` stays set
  // between naps, and what was stored before the first one is seen after it. So the first one is
  // short where a late wake matters.
  class Naps {
   public:
    explicit Naps(Bell& bell) : bell_(bell) {}
    Naps(const Naps&) = delete;
    Naps& operator=(const Naps&) = delete;
    ~Naps() { end(); }

    // The owner has found something to do.
    void end() {
      if (taken_ > 0) std::atomic_ref(bell_.asleep_).store(0, std::memory_order_relaxed);
      taken_ = 0;
    }

    // Sleeps until someone rings, `ready()` is true, or `at_most` has passed.
    template <class Ready>
    void take(Ready ready, std::chrono::microseconds at_most) {
      const std::uint32_t before = std::atomic_ref(bell_.rings_).load(std::memory_order_acquire);
      if (taken_++ == 0) std::atomic_ref(bell_.asleep_).store(1, std::memory_order_seq_cst);
      if (!ready()) bell_.wait_while(before, at_most);
    }
    [[nodiscard]] std::uint64_t taken() const { return taken_; }

   private:
    Bell& bell_;
    std::uint64_t taken_ = 0;
  };

  // A single nap.
  template <class Ready>
  void sleep(Ready ready, std::chrono::microseconds at_most) {
    Naps(*this).take(ready, at_most);
  }

  // Any rank calls this after a store that may make the owner's `ready()` true.
  void ring() {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the compiler keeps the order
    if (std::atomic_ref(asleep_).load(std::memory_order_relaxed) != 0) wake();
  }

 private:
  void wait_while(std::uint32_t before, std::chrono::microseconds at_most);
  void wake();

  // Counts wakes: one between the owner's load of it and its sleep ends that sleep at once.
  // Whoever rings releases what it did before, and the owner acquires the count before it looks: so
  // an owner that looked too early finds the count changed.
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
