#include "launch.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace rondo::launch {

int run_threads(int ranks, const Body& body, const CommunicatorOptions& options) {
  std::vector<Communicator> group = local_group(ranks, options);
  std::vector<std::exception_ptr> errors(group.size());
  std::vector<int> codes(group.size(), 0);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < group.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        // On the way out of a failure, a communicator tells the other ranks.
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

int run_processes(const char* program, int ranks, const Body& body,
                  const CommunicatorOptions& options) {
  std::string folder = (std::filesystem::temp_directory_path() / "rondo-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error("cannot make " + folder);
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    int code = 2;
    try {
      code = body(from_socket(folder + "/socket", rank, ranks, options));
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: rank %d: %s\n", program, rank, error.what());
    }
    std::fflush(stdout);
    ::_exit(code);
  }
  int largest = 0;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    largest = std::max(largest, WIFEXITED(status) ? WEXITSTATUS(status) : 3);
  }
  std::filesystem::remove_all(folder);
  return largest;
}

}  // namespace rondo::launch
