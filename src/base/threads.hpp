// The library's own threads. They and UCX's block the signals that are for the program's threads: a
// program that takes SIGTERM by signalfd or sigwait blocks it in all threads that it knows, and
// would be ended by one in a thread of a library.
#pragma once

#include <csignal>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace rondo::detail {

// While it lives, this thread and those that it starts block all signals, except those by which the
// system answers a faulty instruction: blocked, these would end the process without the program's
// handler.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    ::sigfillset(&blocked);
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) {
      ::sigdelset(&blocked, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

// `task`: what the thread does, in words that follow "the thread that". Throws TransportError, with
// the limits that forbid it.
[[noreturn]] void throw_no_thread(std::string_view task, const std::system_error& error);
template <class Thread = std::thread, class Function>
Thread start_thread(std::string_view task, Function&& work) {
  const SignalsBlocked inherited;
  try {
    return Thread(std::forward<Function>(work));
  } catch (const std::system_error& error) {
    throw_no_thread(task, error);
  }
}

}  // namespace rondo::detail
