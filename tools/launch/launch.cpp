#include "launch.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
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
#include <thread>
#include <vector>

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
  for (std::size_t i = 0; i < group.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        // If the body throws, its communicator's destructor tells the other ranks.
        codes[i] = body(std::move(group[i]));
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return *std::max_element(codes.begin(), codes.end());
}

int run_processes(const How& how, const std::function<int(Communicator)>& body) {
  std::string folder = (std::filesystem::temp_directory_path() / "rondo-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error("cannot make " + folder);
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
      std::filesystem::remove_all(folder);
      throw std::runtime_error("cannot start process " + std::to_string(rank) + " of " +
                               std::to_string(how.processes) + ": " + why);
    }
    const int code = guarded(how.program, [&] {
      return body(from_socket(folder + "/socket", rank, how.processes, how.options));
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
  std::filesystem::remove_all(folder);
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
