// The limit of file sizes (ulimit -f) as an error of the system call that meets it. Otherwise the system also sends SIGXFSZ,
// which ends a program that has not thought of it.
#pragma once

#include <csignal>
#include <ctime>

namespace rondo::detail {

// While it lives, a write of this thread that meets the limit fails with EFBIG, and nothing else happens.
class FileSizeSignalHeld {
 public:
  FileSizeSignalHeld() {
    ::sigemptyset(&signal_);
    ::sigaddset(&signal_, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &signal_, &before_);
    was_pending_ = is_pending();
  }
  FileSizeSignalHeld(const FileSizeSignalHeld&) = delete;
  FileSizeSignalHeld& operator=(const FileSizeSignalHeld&) = delete;
  ~FileSizeSignalHeld() {
    const timespec now{};
    // One that was sent before is the program's.
    if (!was_pending_ && is_pending()) ::sigtimedwait(&signal_, nullptr, &now);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  static bool is_pending() {
    sigset_t pending;
    return ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGXFSZ) == 1;
  }

  sigset_t signal_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace rondo::detail
