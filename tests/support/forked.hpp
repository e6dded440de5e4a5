// Ranks as forked processes.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace rondo::test {

// One of `size` processes that meet at a socket.
struct ForkedRank {
  std::string socket;
  int rank = 0;
  int size = 1;
};

// Runs `body` in `size` forked processes, which must make no threads before; returns their exit
// codes, 200 for one that ended by a signal.
inline std::vector<int> run_forked(int size, const std::function<int(const ForkedRank&)>& body) {
  std::string folder = "/tmp/rondo-test-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error("mkdtemp");
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      int code = 201;
      try {
        code = body({folder + "/socket", rank, size});
      } catch (...) {
      }
      ::_exit(code);
    }
    if (child < 0) throw std::runtime_error("fork");
    children.push_back(child);
  }
  std::vector<int> codes;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 200);
  }
  ::unlink((folder + "/socket").c_str());
  ::rmdir(folder.c_str());
  return codes;
}

// Runs `child` in a forked process; returns its exit code, 99 if it threw, or 1000 and the number
// of the signal that ended it.
inline int exit_code_of(const std::function<int()>& child) {
  const pid_t id = ::fork();
  if (id == 0) {
    int code = 99;
    try {
      code = child();
    } catch (...) {
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(id, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

}  // namespace rondo::test
