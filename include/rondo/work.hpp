/// \file
/// The handle of an asynchronous call.
#pragma once

#include <memory>
#include <utility>

#include <rondo/export.hpp>

namespace rondo {

namespace detail {
struct WorkState;
}

/// Stands for one asynchronous call. Cheap to copy and to move; copies stand for the same call.
/// Destroying a handle does not cancel the call: the call's buffers must live until it is done. A
/// handle may outlive its communicator, whose destructor ends the call.
class RONDO_API Work {
 public:
  /// A handle without a call; done() is true and wait() returns at once.
  Work() = default;
  explicit Work(std::shared_ptr<detail::WorkState> state) : state_(std::move(state)) {}

  /// Blocks until the call is done; the call's deadline limits the wait. If the call failed, throws
  /// its error, each time. Any thread may wait.
  void wait() const;

  /// Whether wait() would return, or throw, without blocking.
  [[nodiscard]] bool done() const;

 private:
  std::shared_ptr<detail::WorkState> state_;
};

}  // namespace rondo
