// UCX in this process: one worker for all communicators, and its connections to other processes.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/owner_process.hpp"
#include "net/ucx_leftovers.hpp"
#include "net/ucx_library.hpp"

namespace rondo::detail {

// The name of a UCX status, and whether a pointer from UCX is an error.
std::string ucx_text(ucs_status_t status);

// A connection to another process. All communicators of the two processes share it.
struct UcxEndpoint {
  ucp_ep_h handle = nullptr;
  // Set by UCX's error handler, inside UcxWorker::progress().
  ucs_status_t failure = UCS_OK;
  std::chrono::steady_clock::time_point failed_at;
  // A send was given up that has not ended.
  bool is_stuck = false;
};

class UcxWorker {
 public:
  // The worker of this process that uses `interface` (empty: any), made at the first call. It lives
  // until the process exits, and not in its forked children: a connection that is closed while the
  // other side still sends loses what that side has not read yet. Throws TransportError.
  static std::shared_ptr<UcxWorker> of_process(const std::string& interface);

  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;
  ~UcxWorker();

  // All that follows, and all use of the worker and its endpoints, under this lock.
  struct Lock {
    explicit Lock(std::mutex& mutex) : held(mutex) {}
    std::lock_guard<std::mutex> held;
    UcxUse use;
  };
  [[nodiscard]] Lock lock() { return Lock(mutex_); }
  [[nodiscard]] ucp_worker_h handle() const { return worker_; }
  // Returns what other processes need to connect to this one.
  [[nodiscard]] const std::string& address() const { return address_; }
  // The connection to the process with this address, made at its first use. Throws TransportError.
  UcxEndpoint& endpoint_to(const std::string& address);
  // Looks at the network, and moves what can be moved.
  void progress() { ucx().worker_progress(worker_); }
  // What comes from processes that have not left a messenger yet which is destroyed here.
  [[nodiscard]] UcxLeftovers& leftovers() { return leftovers_; }

 private:
  explicit UcxWorker(const std::string& interface);
  void make_worker();
  // Waits up to a second until the other processes have come as far.
  void part();
  // Whether all are closed.
  bool close_endpoints();

  OwnerProcess owner_process_;
  std::mutex mutex_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::string address_;
  std::map<std::string, std::unique_ptr<UcxEndpoint>> endpoints_;  // by address
  UcxLeftovers leftovers_;
};

}  // namespace rondo::detail
