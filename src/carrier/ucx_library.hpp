// UCX's functions, found when they are first needed: a program that only links UCX already gets its handlers of signals and
// its changes to mmap and munmap, which not everybody who links Rondo wants (address sanitizers crash by them).
#pragma once

#include <ucp/api/ucp.h>
#include <ucs/debug/log_def.h>

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
  decltype(&::ucs_status_string) status_string;
  decltype(&::ucs_log_push_handler) log_push_handler;
};

// Stays loaded. Throws TransportError if UCX is not installed.
const UcxLibrary& ucx();

}  // namespace rondo::detail
