// Starts a rank's kernels, and watches over them: a thread tells kernels that the communicator has
// ended, tells hosts why kernels gave up, and drives the pump.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <rondo/cuda.hpp>

#include "cuda/engine/call_arguments.hpp"
#include "cuda/engine/device_registry.hpp"
#include "cuda/engine/device_wiring.hpp"
#include "cuda/engine/failure_text.hpp"
#include "engine/wiring.hpp"
#include "plan/plan_call.hpp"

namespace rondo::detail::gpu {

class DeviceEngine {
 public:
  // Borrows the wiring of the host communicator. `timeout`: how long the destructor waits for other hosts.
  DeviceEngine(Wiring& host, std::chrono::milliseconds timeout, DeviceWiring wiring);
  DeviceEngine(const DeviceEngine&) = delete;
  DeviceEngine& operator=(const DeviceEngine&) = delete;
  ~DeviceEngine();

  // Any thread may call, in the same order on all ranks. Waits for the device when many operations are ahead of it
  // (OperationsAhead).
  void enqueue(const PlannedCall& planned, api::Stream stream);
  // Throws what has ended the communicator, if anything has.
  void check() const;
  void wait(api::Stream stream);
  // Waits until the calls that were enqueued so far have ended; captured ones are not waited for.
  void wait_for_calls();
  void abort(const std::string& reason) noexcept;

  [[nodiscard]] const DeviceWiring& wiring() const { return wiring_; }
  [[nodiscard]] DeviceRegistry& registry() { return registry_; }
  [[nodiscard]] const DeviceRegistry& registry() const { return registry_; }
  // Where the other ranks find the buffers of `call` on this rank; nothing if they cannot reach all that they need.
  [[nodiscard]] std::optional<ShownBuffers> shown_buffers(const Call& call) const;

 private:
  // Returns how many operations it has enqueued on the device.
  std::uint64_t start(const PlannedCall& planned, api::Stream stream);
  std::uint64_t start_with_scratch(const Call& call, const Kernel& kernel, const CallBlocks& blocks,
                                   KernelArguments arguments, api::Stream stream);
  // Before the first call that uses an edge to another host.
  void open_edges(const Schedule& schedule);
  void carry_opened();
  void wait_for_stopped(api::Stream stream) noexcept;
  // A CudaError ends the communicator for all.
  template <class Function>
  void or_end(Function&& function);
  // Both return whether this was the first reason. raise() also stops all kernels.
  bool tell_hosts(int rank, const std::string& text) noexcept;
  bool raise(int rank, const std::string& text) noexcept;

  // Run by the watcher thread.
  void watch();
  // Whether there was anything to do.
  bool look();
  void look_for_ended_peers();
  void look_for_other_calls();
  // The failure of a kernel of `rank`, as text; empty if this rank can read none.
  [[nodiscard]] std::string reason_of(int rank) const;

  void send_the_rest();
  void leave();
  // The ranks of this host that have not received all slots that lie in device memory.
  [[nodiscard]] std::vector<int> ranks_that_have_slots() const;

  Wiring& host_;
  std::chrono::milliseconds timeout_;
  AbortBoard& board_;
  DeviceWiring wiring_;
  DeviceRegistry registry_;
  std::vector<std::uint64_t> borders_;  // see RingPlace
  RingPlace place_;
  std::mutex calls_;
  bool any_call_ = false;

  // Used only by the watcher; any thread may read mismatch_ once mismatched_ is set.
  std::optional<OtherCall> suspected_;
  std::chrono::steady_clock::time_point suspected_since_;
  std::string mismatch_;
  std::atomic<bool> mismatched_ = false;  // released after mismatch_ is written

  std::mutex mutex_;
  std::condition_variable stopping_;
  bool stop_ = false;
  PumpEdges to_open_;  // edges that calls use, and that the pump does not carry yet; under mutex_
  std::thread watcher_;
};

}  // namespace rondo::detail::gpu
