// Lets a reducer have a communicator to itself for an iteration, so that a call that the program makes meanwhile is an
// error and not a wrong order of calls.
#pragma once

#include <atomic>

namespace rondo::detail {

class ExclusiveUse {
 public:
  // Returns false if another user has it.
  bool take(const void* user) {
    const void* holder = nullptr;
    return user_.compare_exchange_strong(holder, user, std::memory_order_relaxed) || holder == user;
  }
  void give_back(const void* user) {
    user_.compare_exchange_strong(user, nullptr, std::memory_order_relaxed);
  }
  [[nodiscard]] bool forbids(const void* user) const {
    const void* holder = user_.load(std::memory_order_relaxed);
    return holder != nullptr && holder != user;
  }

 private:
  // Null: all may make calls. Written by the thread that begins or ends an iteration, read by each call. Relaxed, since
  // nothing else is published by it: a right program never makes a call in the middle of an iteration.
  std::atomic<const void*> user_ = nullptr;
};

inline constexpr const char* kReducerHasIt =
    "a gradient reducer has this communicator to itself between the first mark and finish(): make "
    "the call after "
    "finish(), or on a communicator of its own (duplicate())";

}  // namespace rondo::detail
