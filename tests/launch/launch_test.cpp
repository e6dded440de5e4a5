// Starting ranks as processes, where the system lets no more of them be made.

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#include <gtest/gtest.h>

#include "tools/launch/launch.hpp"

namespace rondo::test {
namespace {

// From here on the user of this process may have `processes` processes, this one included. The
// limit does not hold for root, so root changes to a user id that nobody uses.
void allow_processes(rlim_t processes) {
  const uid_t nobody_else = 30'000 + static_cast<uid_t>(::getpid()) % 30'000;
  const rlimit limit{processes, processes};
  if (::setrlimit(RLIMIT_NPROC, &limit) != 0) std::abort();
  if (::geteuid() == 0 && ::setresuid(nobody_else, nobody_else, nobody_else) != 0) std::abort();
}

[[noreturn]] void launch_four(bool root) {
  allow_processes(root ? 5 : 0);
  launch::How how;
  how.program = "launch_test";
  how.processes = 4;
  std::exit(launch::launch(how, nullptr, nullptr, [](const Communicator&) { return 0; }));
}

// Processes that have been started wait for the others at a socket; launch() must end them. The
// process that keeps their folder counts too, and so does a sanitizer's thread.
TEST(LaunchDeathTest, EndsWhatItHasStartedWhereAProcessCannotBe) {
  const bool root = ::geteuid() == 0;
  EXPECT_EXIT(launch_four(root), testing::ExitedWithCode(2),
              root
                  ? "launch_test: cannot start process [123] of 4: Resource temporarily unavailable"
                  : "launch_test: cannot start process 0 of 4: Resource temporarily unavailable");
}

}  // namespace
}  // namespace rondo::test
