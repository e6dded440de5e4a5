// What a write may meet as an error of the system call alone: the limit of file sizes (ulimit -f),
// and a pipe that nobody reads. Otherwise the system also sends SIGXFSZ or SIGPIPE, which ends a
// program that has not thought of it.
#pragma once

#include <csignal>
#include <ctime>
#include <initializer_list>

namespace rondo::detail {

// While it lives, such a write of this thread fails with EFBIG or EPIPE, and nothing else happens.
class WriteSignalsHeld {
 public:
  WriteSignalsHeld() : WriteSignalsHeld(true) {}
  // Does nothing if `holds` is false.
  explicit WriteSignalsHeld(bool holds) : holds_(holds) {
    if (!holds_) return;
    ::sigemptyset(&signals_);
    ::sigaddset(&signals_, SIGXFSZ);
    ::sigaddset(&signals_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    ::sigpending(&pending_before_);
  }
  WriteSignalsHeld(const WriteSignalsHeld&) = delete;
  WriteSignalsHeld& operator=(const WriteSignalsHeld&) = delete;
  ~WriteSignalsHeld() {
    if (!holds_) return;
    // One that was sent before is the program's.
    for (const int signal : {SIGXFSZ, SIGPIPE}) {
      if (::sigismember(&pending_before_, signal) == 1) ::sigdelset(&signals_, signal);
    }
    const timespec now{};
    while (::sigtimedwait(&signals_, nullptr, &now) > 0) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  bool holds_;
  sigset_t signals_{};
  sigset_t before_{};
  sigset_t pending_before_{};
};

}  // namespace rondo::detail
