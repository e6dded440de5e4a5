#include "process.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include <fmt/format.h>

namespace rondo::launcher {
namespace {

constexpr int kNotRunnable = 126;
constexpr int kNotFound = 127;
constexpr std::size_t kLongestPart =
    65536;  // of a line whose end has not come: what is longer is broken

struct Pipe {
  FileDescriptor read;
  FileDescriptor write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe");
  }
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// A terminal that changes nothing of what is written to it; not valid where there is none.
Pipe make_terminal() {
  FileDescriptor ours(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  std::array<char, 64> name{};
  if (!ours.valid() || ::grantpt(ours.get()) != 0 || ::unlockpt(ours.get()) != 0 ||
      ::ptsname_r(ours.get(), name.data(), name.size()) != 0) {
    return Pipe();
  }
  FileDescriptor of_rank(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios settings{};
  if (!of_rank.valid() || ::tcgetattr(of_rank.get(), &settings) != 0) return Pipe();
  ::cfmakeraw(&settings);
  ::tcsetattr(of_rank.get(), TCSANOW, &settings);
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) ::ioctl(of_rank.get(), TIOCSWINSZ, &size);
  return {std::move(ours), std::move(of_rank)};
}

void bind_to(const std::vector<int>& hardware_threads) {
  if (hardware_threads.empty()) return;
  const int last = *std::max_element(hardware_threads.begin(), hardware_threads.end());
  cpu_set_t* set = CPU_ALLOC(last + 1);
  const std::size_t bytes = CPU_ALLOC_SIZE(last + 1);
  CPU_ZERO_S(bytes, set);
  for (const int thread : hardware_threads) CPU_SET_S(thread, bytes, set);
  if (::sched_setaffinity(0, bytes, set) != 0) {
    ::dprintf(STDERR_FILENO, "rondo-launch: cannot bind this rank to hardware thread %d: %s\n",
              hardware_threads.front(), std::strerror(errno));
  }
  CPU_FREE(set);
}

// A launcher that has started this process, or a shell above it, says nothing of the ranks.
void forget_other_launchers() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    for (const std::string_view start :
         {"OMPI_COMM_WORLD_", "PMI_", "PMIX_", "MV2_COMM_WORLD_", "JSM_NAMESPACE_", "HOROVOD_"}) {
      if (text.starts_with(start)) names.emplace_back(text.substr(0, text.find('=')));
    }
  }
  for (const char* name : {"RANK", "WORLD_SIZE"})
    names.emplace_back(name);  // as torchrun sets them
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

// In the new process; only what may be called between fork and exec in a process without threads.
[[noreturn]] void become(const Start& what, pid_t parent, int in, int out, int err) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kNotRunnable);
  ::setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  bind_to(what.hardware_threads);
  forget_other_launchers();
  for (const auto& [name, value] : what.environment) ::setenv(name.c_str(), value.c_str(), 1);
  if (!what.folder.empty() && ::chdir(what.folder.c_str()) != 0) {
    ::dprintf(STDERR_FILENO, "rondo-launch: cannot go to %s: %s\n", what.folder.c_str(),
              std::strerror(errno));
    ::_exit(kNotRunnable);
  }
  std::vector<char*> arguments;
  for (const std::string& word : what.command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  const int code = errno;
  ::dprintf(STDERR_FILENO, "rondo-launch: cannot start %s: %s\n", arguments[0],
            std::strerror(code));
  ::_exit(code == ENOENT ? kNotFound : kNotRunnable);
}

}  // namespace

Lines::Lines(FileDescriptor from, std::string prefix)
    : from_(std::move(from)), prefix_(std::move(prefix)) {
  ::fcntl(from_.get(), F_SETFL, O_NONBLOCK);
}

// Lines that are shown together stay together.
std::string Lines::take() {
  std::array<char, 65536> buffer{};
  const ssize_t bytes = ::read(from_.get(), buffer.data(), buffer.size());
  if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) return {};
  if (bytes <= 0) return end();  // a terminal says so by an error, EIO
  std::string_view text(buffer.data(), static_cast<std::size_t>(bytes));
  std::string whole;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    whole += prefix_;
    whole += std::exchange(part_, "");
    whole += text.substr(0, end + 1);
    text.remove_prefix(end + 1);
  }
  part_ += text;
  if (part_.size() >= kLongestPart) whole += take_part();
  return whole;
}

std::string Lines::take_part() {
  if (part_.empty()) return {};
  return prefix_ + std::exchange(part_, "") + (prefix_.empty() ? "" : "\n");
}

std::string Lines::end() {
  from_ = FileDescriptor();
  return take_part();
}

void Process::tell(const std::string& text) {
  to_tell += text;
  tell_more();
}

void Process::tell_more() {
  while (!to_tell.empty()) {
    const ssize_t written = ::write(input.get(), to_tell.data(), to_tell.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) return;
    if (written <= 0) return to_tell.clear();  // nobody reads any more
    to_tell.erase(0, static_cast<std::size_t>(written));
  }
}

void Process::send(int signal) {
  if (ended) return;
  if (is_host) {
    tell(fmt::format("{}\n", signal));
  } else {
    ::kill(-id, signal);
  }
}

Process start(const Start& what) {
  Pipe out;
  if (!what.is_host) out = make_terminal();
  if (!out.write.valid()) out = make_pipe();
  Pipe err = make_pipe();
  Pipe in;
  if (what.is_host) {
    in = make_pipe();
    ::fcntl(in.write.get(), F_SETFL, O_NONBLOCK);
  } else {
    in.read = FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0)
    throw std::system_error(errno, std::generic_category(), "cannot start " + what.name);
  if (child == 0) become(what, parent, in.read.get(), out.write.get(), err.write.get());
  ::setpgid(child, child);  // also here, so that the group exists before this process signals it
  Process process;
  process.id = child;
  process.name = what.name;
  process.is_host = what.is_host;
  process.input = std::move(in.write);
  process.output.emplace_back(std::move(out.read), what.prefix);
  process.output.emplace_back(std::move(err.read), what.prefix);
  return process;
}

}  // namespace rondo::launcher
