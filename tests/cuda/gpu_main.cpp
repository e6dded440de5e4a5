// Runs tests that need a GPU; exit code 77, with the reason, where there is none, so that they
// count as skipped.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include <gtest/gtest.h>

#include <rondo/cuda.hpp>

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;
  // Asked in a child process, since a process that has called CUDA can no longer fork ranks.
  const pid_t child = ::fork();
  if (child == 0) {
    if (rondo::cuda::device_count() > 0) ::_exit(0);
    std::printf("no CUDA device: %s\n", std::string(rondo::cuda::why_no_device()).c_str());
    std::fflush(stdout);
    ::_exit(kSkipped);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kSkipped) return kSkipped;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
