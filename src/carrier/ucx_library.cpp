#include "carrier/ucx_library.hpp"

#include <dlfcn.h>

#include <string>

#include <fmt/format.h>

#include <rondo/errors.hpp>

namespace rondo::detail {
namespace {

class Loader {
 public:
  Loader() : handle_(::dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) fail();
  }
  // The libraries that this one needs are searched, too.
  template <class Function>
  void find(const char* name, Function& function) const {
    void* found = ::dlsym(handle_, name);
    if (found == nullptr) fail();
    function = reinterpret_cast<Function>(found);
  }

 private:
  [[noreturn]] static void fail() {
    throw TransportError(
        fmt::format("UCX cannot be loaded, which carries messages between hosts without MPI: {}; "
                    "install it (Debian: "
                    "libucx0), or start the ranks by mpirun and use from_mpi",
                    ::dlerror()));
  }
  void* handle_;
};

UcxLibrary load() {
  const Loader loader;
  UcxLibrary found{};
  loader.find("ucp_config_read", found.config_read);
  loader.find("ucp_config_modify", found.config_modify);
  loader.find("ucp_config_release", found.config_release);
  loader.find("ucp_init_version", found.init_version);
  loader.find("ucp_cleanup", found.cleanup);
  loader.find("ucp_worker_create", found.worker_create);
  loader.find("ucp_worker_destroy", found.worker_destroy);
  loader.find("ucp_worker_get_address", found.worker_get_address);
  loader.find("ucp_worker_release_address", found.worker_release_address);
  loader.find("ucp_worker_progress", found.worker_progress);
  loader.find("ucp_ep_create", found.ep_create);
  loader.find("ucp_ep_close_nbx", found.ep_close_nbx);
  loader.find("ucp_tag_send_nbx", found.tag_send_nbx);
  loader.find("ucp_tag_send_sync_nbx", found.tag_send_sync_nbx);
  loader.find("ucp_tag_recv_nbx", found.tag_recv_nbx);
  loader.find("ucp_request_check_status", found.request_check_status);
  loader.find("ucp_request_cancel", found.request_cancel);
  loader.find("ucp_request_free", found.request_free);
  loader.find("ucs_status_string", found.status_string);
  loader.find("ucs_log_push_handler", found.log_push_handler);
  return found;
}

}  // namespace

const UcxLibrary& ucx() {
  static const UcxLibrary library = load();
  return library;
}

}  // namespace rondo::detail
