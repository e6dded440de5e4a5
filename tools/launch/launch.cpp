#include "launch.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <rondo/errors.hpp>
#include <rondo/start.hpp>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "socket_folder.hpp"
#include "under_mpirun.hpp"

namespace rondo::launch {
namespace {

constexpr int kFailed = 2;

int guarded(const char* program, const std::function<int()>& what) {
  try {
    return what();
  } catch (const std::exception& error) {
    report(program, error.what());
    return kFailed;
  }
}

int run_threads(const How& how, int ranks, const std::function<int(Communicator)>& body) {
  std::vector<Communicator> group = local_group(ranks, how.options);
  std::vector<std::exception_ptr> errors(group.size());
  std::vector<int> codes(group.size(), 0);
  std::vector<std::thread> threads;
  std::string no_thread;
  for (std::size_t i = 0; i < group.size() && no_thread.empty(); ++i) {
    try {
      threads.emplace_back([&, i, comm = std::move(group[i])]() mutable {
        try {
          // If the body throws, its communicator's destructor tells the other ranks.
          codes[i] = body(std::move(comm));
        } catch (...) {
          errors[i] = std::current_exception();
        }
      });
    } catch (const std::system_error& error) {
      no_thread = "the thread of rank " + std::to_string(i) + " of " + std::to_string(ranks) +
                  " cannot be started: " + error.code().message() +
                  "; ask for fewer ranks, or allow more threads (ulimit -u; in a container, the "
                  "cgroup's pids.max), address space (ulimit -v) or smaller stacks (ulimit -s)";
    }
  }
  if (!no_thread.empty()) group.clear();  // which tells those that run
  for (std::thread& thread : threads) thread.join();
  if (!no_thread.empty()) throw std::runtime_error(no_thread);
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return *std::max_element(codes.begin(), codes.end());
}

// A folder for the ranks' socket, which is removed when this object is destroyed, or when its
// process has ended, however that ends.
class SocketFolder {
 public:
  SocketFolder() : name_(make_socket_folder("rondo")) {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) return;
    keeper_ = ::fork();
    if (keeper_ != 0) return;  // also where no process can be made
    ::setsid();                // whoever kills all processes of the group leaves this one
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, nullptr);  // those of the terminal, say, are for the ranks
    ::close(ends_[1]);
    char none = 0;
    while (::read(ends_[0], &none, 1) < 0 && errno == EINTR) {
    }
    remove();
    ::_exit(0);
  }
  SocketFolder(const SocketFolder&) = delete;
  SocketFolder& operator=(const SocketFolder&) = delete;
  ~SocketFolder() {
    forget();
    if (keeper_ > 0) {
      ::waitpid(keeper_, nullptr, 0);
    } else {
      remove();
    }
  }
  // In a child.
  void forget() {
    for (const int end : ends_) {
      if (end >= 0) ::close(end);
    }
    ends_ = {-1, -1};
  }
  [[nodiscard]] std::string socket() const { return name_ + "/socket"; }

 private:
  void remove() const {
    std::error_code ignored;
    std::filesystem::remove_all(name_, ignored);
  }

  std::string name_;
  std::array<int, 2> ends_ = {-1, -1};  // this process keeps the second open
  pid_t keeper_ = -1;
};

int run_processes(const How& how, const std::function<int(Communicator)>& body) {
  SocketFolder folder;
  const pid_t parent = ::getpid();
  std::vector<pid_t> children;
  for (int rank = 0; rank < how.processes; ++rank) {
    const pid_t child = ::fork();
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    if (child < 0) {
      const std::string why = std::strerror(errno);
      for (const pid_t other : children) ::kill(other, SIGTERM);
      for (const pid_t other : children) ::waitpid(other, nullptr, 0);
      throw std::runtime_error("cannot start process " + std::to_string(rank) + " of " +
                               std::to_string(how.processes) + ": " + why);
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody waits for a rank whose parent is gone
    if (::getppid() != parent) ::_exit(kFailed);
    folder.forget();
    const int code = guarded(how.program, [&] {
      return body(from_socket(folder.socket(), rank, how.processes, how.options));
    });
    std::fflush(stdout);
    ::_exit(code);
  }
  int largest = 0;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    largest = std::max(largest, WIFEXITED(status) ? WEXITSTATUS(status) : kFailed);
  }
  return largest;
}

}  // namespace

void report(const char* program, const char* text) {
  const std::string line = std::string(program) + ": " + text + "\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

bool starts_mpi(int ranks, int processes) {
  if (!kHasMpi || ranks + processes > 0) return false;
  try {
    const std::string launched_by = launcher();
    if (launched_by == "Slurm") return srun_serves_mpi();
    return launched_by.empty() || launched_by == "Open MPI";
  } catch (const UsageError&) {
    return false;  // from_environment() says what is wrong
  }
}

int launch(const How& how, int* argc, char*** argv, const std::function<int(Communicator)>& body) {
  return guarded(how.program, [&] {
    if (how.processes > 0) return run_processes(how, body);
    if (how.ranks > 0) return run_threads(how, how.ranks, body);
    if (starts_mpi(how.ranks, how.processes)) return run_under_mpirun(how, argc, argv, body);
    return body(from_environment(how.options));
  });
}

}  // namespace rondo::launch
