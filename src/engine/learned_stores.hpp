// Writes to memory that other ranks read next, by whatever stores are the faster: store_choice.hpp.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>

#include "base/deadline.hpp"
#include "engine/store_choice.hpp"

namespace rondo::detail {

// For one kind of writing: copies, say. To be used by one thread at a time.
class LearnedStores {
 public:
  // Calls write(Stores), which writes `bytes` bytes.
  template <class Write>
  void write(std::size_t bytes, Write&& write) {
    const StoreChoice::Next next = choice_.next(bytes);
    if (!next.is_measured) {
      write(next.stores);
      return;
    }
    const Clock::time_point begin = Clock::now();
    write(next.stores);
    // Waits until the stores have reached a cache or memory, since the reader waits for that, too.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
    choice_.note(bytes, took.count());
  }

 private:
  StoreChoice choice_;
};

}  // namespace rondo::detail
