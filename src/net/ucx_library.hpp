// UCX's functions, found when they are first needed: a program that only links UCX already gets its
// handlers of signals and its changes to mmap and munmap, which not everybody who links Rondo wants
// (address sanitizers crash by them). The program's own reactions to signals are restored after
// that; the changes to mmap and munmap stay, unless UCX_MEM_EVENTS=no is set.
#pragma once

#include <ucp/api/ucp.h>

namespace rondo::detail {

struct UcxLibrary {
  decltype(&::ucp_config_read) config_read;
  decltype(&::ucp_config_modify) config_modify;
  decltype(&::ucp_config_release) config_release;
  decltype(&::ucp_init_version) init_version;
  decltype(&::ucp_cleanup) cleanup;
  decltype(&::ucp_worker_create) worker_create;
  decltype(&::ucp_worker_destroy) worker_destroy;
  decltype(&::ucp_worker_get_address) worker_get_address;
  decltype(&::ucp_worker_release_address) worker_release_address;
  decltype(&::ucp_worker_progress) worker_progress;
  decltype(&::ucp_ep_create) ep_create;
  decltype(&::ucp_ep_close_nbx) ep_close_nbx;
  decltype(&::ucp_tag_send_nbx) tag_send_nbx;
  decltype(&::ucp_tag_send_sync_nbx) tag_send_sync_nbx;
  decltype(&::ucp_tag_recv_nbx) tag_recv_nbx;
  decltype(&::ucp_request_check_status) request_check_status;
  decltype(&::ucp_request_cancel) request_cancel;
  decltype(&::ucp_request_free) request_free;
  decltype(&::ucp_tag_probe_nb) tag_probe_nb;
  decltype(&::ucp_tag_msg_recv_nbx) tag_msg_recv_nbx;
  decltype(&::ucs_status_string) status_string;
};

// Stays loaded, and this library with it: UCX goes on calling its log hook. Throws TransportError
// if UCX is not installed.
const UcxLibrary& ucx();

// While it lives, UCX's messages of this thread are Rondo's, and go to Rondo's log. A program may
// use UCX itself, too; what UCX says to that goes where it always goes.
class UcxUse {
 public:
  UcxUse() { ++depth_; }
  UcxUse(const UcxUse&) = delete;
  UcxUse& operator=(const UcxUse&) = delete;
  ~UcxUse() { --depth_; }
  [[nodiscard]] static bool by_this_thread() { return depth_ > 0; }

 private:
  inline static thread_local int depth_ = 0;
};

}  // namespace rondo::detail
