#include "net/ucx_library.hpp"

#include <dlfcn.h>
#include <ucs/debug/log_def.h>

#include <array>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/keep_loaded.hpp"
#include "base/log.hpp"

namespace rondo::detail {
namespace {

// How the process reacts to signals: as before when this object is destroyed. UCX installs handlers
// for faults (SIGSEGV and others) while it is loaded.
class KeptReactions {
 public:
  KeptReactions() {
    for (int signal = 1; signal < kEnd; ++signal) known_[at(signal)] = read(signal, before_);
  }
  KeptReactions(const KeptReactions&) = delete;
  KeptReactions& operator=(const KeptReactions&) = delete;
  ~KeptReactions() {
    std::array<struct sigaction, kEnd> now{};
    for (int signal = 1; signal < kEnd; ++signal) {
      if (!known_[at(signal)] || !read(signal, now)) continue;
      const struct sigaction& kept = before_[at(signal)];
      if (now[at(signal)].sa_sigaction != kept.sa_sigaction) ::sigaction(signal, &kept, nullptr);
    }
  }

 private:
  static constexpr int kEnd = 65;
  static std::size_t at(int signal) { return static_cast<std::size_t>(signal); }
  // False for the signals that the C library keeps to itself.
  static bool read(int signal, std::array<struct sigaction, kEnd>& into) {
    return ::sigaction(signal, nullptr, &into[at(signal)]) == 0;
  }

  std::array<struct sigaction, kEnd> before_{};
  std::array<bool, kEnd> known_{};
};

void* open_library() {
  const KeptReactions kept;
  return ::dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
}

// UCX would print these itself.
ucs_log_func_rc_t to_rondos_log(const char* /*file*/, unsigned /*line*/, const char* /*function*/,
                                ucs_log_level_t level, const ucs_log_component_config_t* /*conf*/,
                                const char* format, va_list arguments) {
  if (!UcxUse::by_this_thread() || level > UCS_LOG_LEVEL_WARN) return UCS_LOG_FUNC_RC_CONTINUE;
  std::array<char, 512> text{};
  std::vsnprintf(text.data(), text.size(), format, arguments);
  // Rondo sets what some releases of UCX do not have.
  const bool unused =
      std::string_view(text.data()).find("invalid config") != std::string_view::npos;
  log(unused ? LogLevel::info : LogLevel::warning, "UCX: {}", text.data());
  return UCS_LOG_FUNC_RC_STOP;
}

class Loader {
 public:
  Loader() : handle_(open_library()) {
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
  loader.find("ucp_tag_probe_nb", found.tag_probe_nb);
  loader.find("ucp_tag_msg_recv_nbx", found.tag_msg_recv_nbx);
  loader.find("ucs_status_string", found.status_string);
  decltype(&::ucs_log_push_handler) push_handler = nullptr;
  loader.find("ucs_log_push_handler", push_handler);
  keep_loaded();
  push_handler(to_rondos_log);
  return found;
}

}  // namespace

const UcxLibrary& ucx() {
  static const UcxLibrary library = load();
  return library;
}

}  // namespace rondo::detail
