#include "guard.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <optional>
#include <system_error>
#include <vector>

#include <fmt/format.h>

namespace rondo::launcher {
namespace {

constexpr std::array kPassedOn = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                  SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

// Empty while the child runs.
std::optional<int> exit_code_of(pid_t child) {
  int status = 0;
  // Also others that this process has got from the child, once the child is gone.
  for (pid_t id = ::waitpid(-1, &status, WNOHANG); id > 0; id = ::waitpid(-1, &status, WNOHANG)) {
    if (id != child) continue;
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    fmt::print(stderr, "rondo-launch: was ended by signal {}; the ranks are ended\n",
               WTERMSIG(status));
    return 128 + WTERMSIG(status);
  }
  return std::nullopt;
}

int guard(pid_t child, const FileDescriptor& signals, const FileDescriptor& to_child) {
  for (;;) {
    if (const std::optional<int> code = exit_code_of(child)) {
      kill_all_children();
      return *code;
    }
    pollfd request{signals.get(), POLLIN, 0};
    ::poll(&request, 1, -1);
    for (const int signal : read_signals(signals)) {
      const auto number = static_cast<unsigned char>(signal);
      static_cast<void>(::write(to_child.get(), &number, 1));
      if (signal == SIGTSTP) ::raise(SIGSTOP);
    }
  }
}

}  // namespace

bool is_passed_on(int signal) {
  return std::find(kPassedOn.begin(), kPassedOn.end(), signal) != kPassedOn.end();
}

FileDescriptor hear_signals() {
  std::signal(SIGCHLD, SIG_DFL);  // else children that end are not reported
  sigset_t heard;
  sigemptyset(&heard);
  sigaddset(&heard, SIGCHLD);
  for (const int signal : kPassedOn) {
    // One that whoever started this program lets it ignore (nohup, or a shell's &) is ignored by
    // the ranks, too.
    struct sigaction before{};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaddset(&heard, signal);
  }
  ::sigprocmask(SIG_BLOCK, &heard, nullptr);
  FileDescriptor signals(::signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) throw std::system_error(errno, std::generic_category(), "signalfd");
  return signals;
}

std::vector<int> read_signals(const FileDescriptor& from) {
  std::vector<int> signals;
  signalfd_siginfo info{};
  while (::read(from.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal != SIGCHLD) signals.push_back(signal);
  }
  return signals;
}

void kill_all_children() {
  for (;;) {
    std::ifstream children(fmt::format("/proc/self/task/{}/children", ::getpid()));
    bool any = false;
    for (pid_t child = 0; children >> child;) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
      any = true;
    }
    if (!any) return;
  }
}

int under_guard(const std::function<int(const FileDescriptor& alive)>& work) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe");
  }
  FileDescriptor alive(ends[0]);
  FileDescriptor held(ends[1]);
  const FileDescriptor signals = hear_signals();
  std::signal(SIGPIPE, SIG_IGN);  // the child may be gone when a signal is passed on
  // What a rank leaves behind becomes a child of the process that started it, or of this one.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) {
    ::setpgid(0, 0);  // so that signals of a terminal come by the other process alone
    ::prctl(PR_SET_NAME,
            "rondo-ranks");  // so that `pkill -9 rondo-launch` leaves it to end the ranks
    sigset_t output;
    sigemptyset(&output);
    // Else the terminal may stop this process when it writes there, since it is in the background.
    sigaddset(&output, SIGTTOU);
    ::sigprocmask(SIG_BLOCK, &output, nullptr);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    held = FileDescriptor();
    return work(alive);
  }
  alive = FileDescriptor();
  return guard(child, signals, held);
}

}  // namespace rondo::launcher
