/// \file
/// Calls that are prepared once and made many times.
#pragma once

#include <memory>

#include <rondo/export.hpp>
#include <rondo/work.hpp>

namespace rondo {

namespace detail {
struct PreparedCall;
}

/// A call that Communicator::prepare() has checked and planned, so that each time it is made costs
/// less. It can be moved, not copied, and ends before its communicator; an object that was moved
/// from may only be destroyed or assigned to. Its buffers live as long as it does; what is in them
/// may change between calls.
///
///     rondo::PersistentCall sum = comm.prepare(comm.builder().all_reduce(gradient, gradient));
///     for (;;) { ...; sum.run(); }
///
/// Each run() and start() is one call of the communicator, in the order of all its calls, and
/// throws as those do.
class RONDO_API PersistentCall {
 public:
  explicit PersistentCall(std::unique_ptr<detail::PreparedCall> prepared);
  PersistentCall(PersistentCall&&) noexcept;
  PersistentCall& operator=(PersistentCall&&) noexcept;
  PersistentCall(const PersistentCall&) = delete;
  PersistentCall& operator=(const PersistentCall&) = delete;
  ~PersistentCall();

  /// Makes the call, and returns when it is done.
  void run();
  /// Makes the call asynchronously. It must be done before this object is destroyed.
  [[nodiscard]] Work start();

 private:
  std::unique_ptr<detail::PreparedCall> prepared_;
};

}  // namespace rondo
