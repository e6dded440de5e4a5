// Writes to memory that other ranks read next, by whatever stores are the faster: store_choice.hpp.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/deadline.hpp"
#include "engine/store_choice.hpp"
#include "reduce/kernels.hpp"

namespace rondo::detail {

// For one kind of writing, to one kind of place. To be used by one thread at a time.
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
    wait_for_stores();
    const std::chrono::nanoseconds took = Clock::now() - begin;
    choice_.note(bytes, static_cast<std::uint64_t>(took.count()));
  }

 private:
  // The reader waits for the stores, too. On x86 processors an exchange waits until all earlier
  // stores have reached a cache or memory; on others some of that time may not be measured.
  static void wait_for_stores() {
    std::atomic<int> any{0};
    any.exchange(1, std::memory_order_seq_cst);
  }

  StoreChoice choice_;
};

// Copies by the stores that it learns to be the faster.
class LearnedCopy {
 public:
  // The buffers do not overlap.
  void operator()(std::byte* dst, const std::byte* src, std::size_t bytes) {
    stores_.write(bytes, [&](Stores stores) {
      (stores == Stores::cached ? copy_.cached : copy_.non_temporal)(dst, src, bytes);
    });
  }

 private:
  CopyKernel copy_ = vector_copy();
  LearnedStores stores_;
};

}  // namespace rondo::detail
