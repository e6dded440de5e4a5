// Lets a reducer have a communicator to itself for an iteration, so that a call that the program
// makes meanwhile is an error and not a wrong order of calls.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <rondo/errors.hpp>

namespace rondo::detail {

class ExclusiveUse {
 public:
  // For a reducer. Throws UsageError if another one has the communicator.
  void take(const void* reducer, int rank) {
    const void* holder = nullptr;
    if (holder_.compare_exchange_strong(holder, reducer, std::memory_order_relaxed)) return;
    if (holder != reducer) refuse("GradientReducer", rank, "another");
  }
  void give_back(const void* reducer) {
    holder_.compare_exchange_strong(reducer, nullptr, std::memory_order_relaxed);
  }
  [[nodiscard]] bool forbids(const void* user) const {
    const void* holder = holder_.load(std::memory_order_relaxed);
    return holder != nullptr && holder != user;
  }
  // Throws UsageError if `call` of `user` is forbidden. `user`: null for the program, else a
  // reducer.
  void refuse_if_forbidden(std::string_view call, int rank, const void* user) const {
    if (forbids(user)) refuse(call, rank, "a");
  }

 private:
  [[noreturn]] static void refuse(std::string_view call, int rank, std::string_view which) {
    throw UsageError(fmt::format(
        "rank {}: {}: {} gradient reducer has this communicator to itself between the first mark "
        "and finish(): make the call after finish(), or on a communicator of its own "
        "(duplicate()); a hook makes its calls on the communicator that it is given",
        rank, call, which));
  }

  // Null: all may make calls. Written by the thread that begins or ends an iteration, read by each
  // call. Relaxed, since nothing else is published by it: a right program never makes a call in the
  // middle of an iteration.
  std::atomic<const void*> holder_ = nullptr;
};

}  // namespace rondo::detail
