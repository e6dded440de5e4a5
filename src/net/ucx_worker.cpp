#include "net/ucx_worker.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/environment.hpp"
#include "base/file_descriptor.hpp"
#include "base/threads.hpp"

namespace rondo::detail {
namespace {

// This tag belongs to no messenger: a messenger's tags have a random group in the upper bits.
constexpr ucp_tag_t kPartingTag = 0;

const char* cure_of(ucs_status_t status) {
  switch (status) {
    case UCS_ERR_BUSY:
      return "every port of UCX_TCP_PORT_RANGE is in use, or was until less than a minute ago: "
             "allow more ports, or wait";
    case UCS_ERR_NO_MEMORY:
      return "allow more address space (ulimit -v) or memory (in a container, the cgroup's "
             "memory.max)";
    case UCS_ERR_IO_ERROR:
      return "UCX needs /proc and /sys, and file descriptors (ulimit -n); ucx_info -d shows which "
             "networks it finds on this host";
    default:
      return "ucx_info -d shows which networks UCX finds on this host";
  }
}

void check(ucs_status_t status, const char* what) {
  if (status == UCS_OK) return;
  throw TransportError(fmt::format("{} failed: {}; {}", what, ucx_text(status), cure_of(status)));
}

// UCX keeps a setting that it does not know, and uses it nowhere.
void set(ucp_config_t* config, const std::string& name, const std::string& value) {
  static_cast<void>(ucx().config_modify(config, name.c_str(), value.c_str()));
}

bool set_by_user(const std::string& name) {
  return environment_of_others(("UCX_" + name).c_str()).has_value();
}

// A setting that the user may change by UCX's own variable.
void set_default(ucp_config_t* config, const std::string& name, const std::string& value) {
  if (!set_by_user(name)) set(config, name, value);
}

// UCX ends the process where it lacks a thread or a descriptor of its own.
void require_resources() {
  start_thread("UCX needs", [] {}).join();
  constexpr std::size_t kDescriptors = 32;  // of UCX, its connections apart
  std::vector<FileDescriptor> tried;
  while (tried.size() < kDescriptors) {
    tried.emplace_back(::eventfd(0, EFD_CLOEXEC));
    if (tried.back().valid()) continue;
    throw TransportError(
        fmt::format("UCX needs about {} file descriptors on this rank, and there are {}: {}; allow "
                    "more open files (ulimit -n)",
                    kDescriptors, tried.size() - 1, std::strerror(errno)));
  }
}

void on_failure(void* argument, ucp_ep_h /*handle*/, ucs_status_t status) {
  auto* endpoint = static_cast<UcxEndpoint*>(argument);
  if (endpoint->failure != UCS_OK) return;
  endpoint->failure = status;
  endpoint->failed_at = std::chrono::steady_clock::now();
}

}  // namespace

std::string ucx_text(ucs_status_t status) { return ucx().status_string(status); }

std::shared_ptr<UcxWorker> UcxWorker::of_process(const std::string& interface) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<UcxWorker>> workers;  // by interface
  const std::lock_guard lock(mutex);
  for (const auto& [name, worker] : workers) {
    if (worker == nullptr || worker->owner_process_.is_this()) continue;
    // UCX's thread does not exist here, and UCX does not make another one.
    throw TransportError(
        "this process was forked from one that uses UCX, which does not work in its children: fork "
        "before the first communicator that uses UCX, or let the child execute a program");
  }
  std::shared_ptr<UcxWorker>& worker = workers[interface];
  if (worker == nullptr) worker.reset(new UcxWorker(interface));
  return worker;
}

UcxWorker::UcxWorker(const std::string& interface) {
  require_resources();
  const UcxUse use;
  const SignalsBlocked inherited;  // by UCX's threads
  ucp_config_t* config = nullptr;
  check(ucx().config_read(nullptr, nullptr, &config), "ucp_config_read");
  // Ranks of one host have Rondo's own shared memory.
  set_default(config, "TLS", "^sm");
  if (!interface.empty()) set_default(config, "NET_DEVICES", interface);
  set_default(config, "KEEPALIVE_INTERVAL", "2s");
  // Else UCX waits in connect() for a host that drops packets, for more than two minutes, whatever
  // the deadline.
  if (!set_by_user("TCP_CONN_NB")) {
    set(config, "CONN_NB", "y");
    set(config, "TCP_CONN_NB", "y");
  }
  // Over TCP, UCX ends the send of a message that it copies although the socket may have had no
  // room for it: then the message leaves only when this rank makes UCX work again, which may be
  // long after the call. A send without a copy ends when the socket has taken the message. Users
  // may not change this setting: Messenger::Delivery::sent promises it.
  set(config, "ZCOPY_THRESH", "1");
  // Else UCX also sends by a second interface, which may belong to another network (a bridge for
  // containers, say).
  set_default(config, "MAX_RNDV_RAILS", "1");
  // With the 8 KiB that UCX takes by itself, an all_reduce of 8 MiB on two hosts at 1 Gbit/s took
  // 75 ms; with these, 70.5 ms. UCX requires that no rank's TX_SEG_SIZE exceeds another
  // rank's RX_SEG_SIZE, so both are set or neither.
  if (!set_by_user("TCP_TX_SEG_SIZE") && !set_by_user("TCP_RX_SEG_SIZE")) {
    for (const std::string name : {"TX_SEG_SIZE", "RX_SEG_SIZE"}) {
      // Releases of UCX differ in whether these settings have the prefix here.
      set_default(config, name, "64k");
      set(config, "TCP_" + name, "64k");
    }
  }
  ucp_params_t wanted{};
  wanted.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  wanted.features = UCP_FEATURE_TAG;
  wanted.mt_workers_shared = 1;
  const ucs_status_t status =
      ucx().init_version(UCP_API_MAJOR, UCP_API_MINOR, &wanted, config, &context_);
  ucx().config_release(config);
  check(status, interface.empty() ? "ucp_init"
                                  : ("ucp_init for the network interface " + interface).c_str());
  try {
    make_worker();
  } catch (...) {
    if (worker_ != nullptr) ucx().worker_destroy(worker_);
    ucx().cleanup(context_);
    throw;
  }
}

void UcxWorker::make_worker() {
  ucp_worker_params_t wanted{};
  wanted.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  wanted.thread_mode = UCS_THREAD_MODE_SERIALIZED;  // by mutex_
  check(ucx().worker_create(context_, &wanted, &worker_), "ucp_worker_create");
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  check(ucx().worker_get_address(worker_, &address, &bytes), "ucp_worker_get_address");
  address_.assign(reinterpret_cast<const char*>(address), bytes);
  ucx().worker_release_address(worker_, address);
}

UcxWorker::~UcxWorker() {
  if (!owner_process_.is_this()) return;  // a forked process
  const UcxUse use;
  leftovers_.give_up(worker_);
  part();
  // UCX ends a process that destroys a worker with a connection that still has something to send.
  if (!close_endpoints()) return;
  ucx().worker_destroy(worker_);
  ucx().cleanup(context_);
}

void UcxWorker::part() {
  const ucp_request_param_t plain{};
  std::vector<void*> open;
  for (const auto& [address, endpoint] : endpoints_) {
    if (endpoint->failure != UCS_OK || endpoint->is_stuck) continue;
    void* said = ucx().tag_send_nbx(endpoint->handle, nullptr, 0, kPartingTag, &plain);
    if (UCS_PTR_IS_PTR(said)) ucx().request_free(said);
    void* received = ucx().tag_recv_nbx(worker_, nullptr, 0, kPartingTag, ~ucp_tag_t{0}, &plain);
    if (UCS_PTR_IS_PTR(received)) open.push_back(received);
  }
  const auto under_way = [&] {
    return std::count_if(open.begin(), open.end(), [](void* request) {
      return ucx().request_check_status(request) == UCS_INPROGRESS;
    });
  };
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (under_way() > 0 && std::chrono::steady_clock::now() < give_up) progress();
  for (void* request : open) {
    if (ucx().request_check_status(request) == UCS_INPROGRESS)
      ucx().request_cancel(worker_, request);
    ucx().request_free(request);
  }
}

// What was sent last may still be on its way out.
bool UcxWorker::close_endpoints() {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  std::vector<void*> closing;
  for (const auto& [address, endpoint] : endpoints_) {
    ucp_request_param_t how{};
    if (endpoint->failure != UCS_OK || endpoint->is_stuck) {
      how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
      how.flags = UCP_EP_CLOSE_FLAG_FORCE;
    }
    void* request = ucx().ep_close_nbx(endpoint->handle, &how);
    if (UCS_PTR_IS_PTR(request)) closing.push_back(request);
  }
  bool all_closed = true;
  for (void* request : closing) {
    while (ucx().request_check_status(request) == UCS_INPROGRESS &&
           std::chrono::steady_clock::now() < give_up) {
      progress();
    }
    all_closed &= ucx().request_check_status(request) != UCS_INPROGRESS;
    ucx().request_free(request);
  }
  return all_closed;
}

UcxEndpoint& UcxWorker::endpoint_to(const std::string& address) {
  const auto known = endpoints_.find(address);
  if (known != endpoints_.end()) return *known->second;
  const SignalsBlocked inherited;  // by a thread that UCX may start
  auto made = std::make_unique<UcxEndpoint>();
  ucp_ep_params_t wanted{};
  wanted.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  wanted.address = reinterpret_cast<const ucp_address_t*>(address.data());
  wanted.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  wanted.err_handler.cb = on_failure;
  wanted.err_handler.arg = made.get();
  check(ucx().ep_create(worker_, &wanted, &made->handle), "ucp_ep_create");
  return *(endpoints_[address] = std::move(made));
}

}  // namespace rondo::detail
