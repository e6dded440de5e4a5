// Starts a rank's kernels.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <rondo/cuda.hpp>

#include "cuda/engine/call_arguments.hpp"
#include "cuda/engine/device_registry.hpp"
#include "cuda/engine/device_wiring.hpp"
#include "cuda/engine/kernel_watch.hpp"
#include "engine/wiring.hpp"
#include "plan/plan_call.hpp"

namespace rondo::detail::gpu {

class DeviceEngine {
 public:
  // Borrows both wirings: the host communicator's and the device's. `timeout`: how long the
  // destructor waits at most for other hosts, and after that for other processes of this host.
  DeviceEngine(Wiring& host, std::chrono::milliseconds timeout, DeviceWiring& wiring);
  DeviceEngine(const DeviceEngine&) = delete;
  DeviceEngine& operator=(const DeviceEngine&) = delete;
  ~DeviceEngine();

  // Any thread may call, in the same order on all ranks. Waits for the device when many operations
  // are ahead of it (OperationsAhead).
  void enqueue(const PlannedCall& planned, api::Stream stream);
  // Throws what has ended the communicator, if anything has.
  void check() const { watch_.check(); }
  void wait(api::Stream stream);
  // Waits until the calls that were enqueued so far have ended; captured ones are not waited for.
  void wait_for_calls();
  void abort(const std::string& reason) noexcept {
    static_cast<void>(watch_.raise(wiring_.rank, reason));
  }

  [[nodiscard]] DeviceRegistry& registry() { return registry_; }
  [[nodiscard]] const DeviceRegistry& registry() const { return registry_; }
  // Where the other ranks find the buffers of `call` on this rank; nothing if they cannot reach all
  // that they need.
  [[nodiscard]] std::optional<ShownBuffers> shown_buffers(const Call& call) const;

 private:
  // Enqueues the call. The caller holds `calls_` and the turn to enqueue, and has made the device
  // current. Returns how many operations that took at most; if it throws, some may be enqueued.
  std::uint64_t start(const PlannedCall& planned, api::Stream stream);
  std::uint64_t start_with_scratch(const Call& call, const Kernel& kernel, const CallBlocks& blocks,
                                   KernelArguments arguments, api::Stream stream);
  void wait_for_stopped(api::Stream stream) noexcept;
  // A CudaError ends the communicator for all.
  template <class Function>
  void or_end(Function&& function);
  void leave();
  // The ranks of this host that have not received all slots that lie in device memory.
  [[nodiscard]] std::vector<int> ranks_that_have_slots() const;

  Wiring& host_;
  std::chrono::milliseconds timeout_;
  DeviceWiring& wiring_;
  DeviceRegistry registry_;
  std::vector<std::uint64_t> borders_;  // of the call at hand, by make_plan through place_.borders
  RingPlace place_;
  std::mutex calls_;  // guards any_call_, and the order of calls
  bool any_call_ = false;
  KernelWatch watch_;
};

}  // namespace rondo::detail::gpu
