// Watches over a rank's kernels: a thread tells kernels that the communicator has ended, tells
// hosts why kernels gave up, and drives the pump.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "cuda/engine/device_wiring.hpp"
#include "cuda/engine/failure_text.hpp"
#include "engine/wiring.hpp"

namespace rondo::detail::gpu {

class KernelWatch {
 public:
  // Borrows both wirings: the host communicator's and the device's.
  KernelWatch(Wiring& host, DeviceWiring& wiring);
  KernelWatch(const KernelWatch&) = delete;
  KernelWatch& operator=(const KernelWatch&) = delete;
  ~KernelWatch();

  // Throws what has ended the communicator, if anything has.
  void check() const;
  // Ends the communicator and stops all kernels. Returns whether this was the first reason.
  bool raise(int rank, const std::string& text) noexcept;
  // Has the pump carry the edges that calls by this schedule use. Before the first such call.
  void open_edges(const Schedule& schedule);

  // Ends the thread. Then sends what kernels have published for other hosts, and waits for that no
  // longer than `timeout`.
  void end_and_send_the_rest(std::chrono::milliseconds timeout);

 private:
  // What the thread does until end(): rounds of work, with sleep between them where there was none.
  // A pump needs short sleeps; without one only failures are looked for.
  void watch();
  // Hands failures from hosts to kernels and back, and drives the pump. Returns whether the pump
  // moved anything.
  bool work();
  void look_for_ended_peers();
  // Ends the communicator if a rank of this host stays in another call of the same number.
  void look_for_mismatch();

  void end();
  void carry_opened();
  // Returns whether this was the first reason.
  bool tell_hosts(int rank, const std::string& text) noexcept;
  // The failure of a kernel of `rank`, as text; empty if this rank can read none.
  [[nodiscard]] std::string reason_of(int rank) const;

  Wiring& host_;
  AbortBoard& board_;
  DeviceWiring& wiring_;

  // Used only by the thread; any thread may read mismatch_ once mismatched_ is set.
  std::optional<OtherCall> suspected_;
  std::chrono::steady_clock::time_point suspected_since_;
  std::string mismatch_;
  std::atomic<bool> mismatched_ = false;  // released after mismatch_ is written

  std::mutex mutex_;
  std::condition_variable stopping_;
  bool stop_ = false;
  PumpEdges to_open_;  // edges that calls use, and that the pump does not carry yet; under mutex_
  std::thread thread_;
};

}  // namespace rondo::detail::gpu
