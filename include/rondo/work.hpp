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
/// Dropping it does not cancel the call: its buffers must live until the call is done. It may outlive
/// its communicator, whose destructor ends the call.
class RONDO_API Work {
 public:
  /// A handle that stands for nothing; done() is true and wait() returns at once.
  Work() = default;
  explicit Work(std::shared_ptr<detail::WorkState> state) : state_(std::move(state)) {}

  /// Blocks until the call is done, which its deadline bounds. Throws what the call failed with,
  /// each time. Any thread may wait.
  void wait() const;

  /// Whether wait() would return, or throw, without blocking.
  [[nodiscard]] bool done() const;

 private:
  std::shared_ptr<detail::WorkState> state_;
};

}  // namespace rondo
