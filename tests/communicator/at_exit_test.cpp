// Communicators that live until the program ends, and children that are forked while one lives.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

namespace rondo::test {
namespace {

// Runs `program` in a child process. Returns its exit code, or 128 plus the signal that ended it.
int way_out(const std::function<void()>& program) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // a hang is an end by SIGALRM
    program();
    std::exit(3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Statics are destroyed in the reverse order of their construction: this one after all that the
// library makes later.
struct Ranks {
  std::vector<Communicator> group;
};
Ranks& static_ranks() {
  static Ranks ranks;
  return ranks;
}

TEST(AtExit, AStaticCommunicatorMayLogWhenTheHookIsLongSet) {
  const int code = way_out([] {
    static_ranks();
    static bool leaving = false;
    // Once `leaving` is set, the hook ends the program with a code that tells whether its vector
    // still exists.
    set_log_hook([held = std::vector<int>(1000, 7)](LogLevel, std::string_view) {
      if (leaving) std::_Exit(held == std::vector<int>(1000, 7) ? 5 : 6);
    });
    static_ranks().group = local_group(2);
    static_ranks().group[1].abort("the program ends");  // which rank 0's destructor logs
    leaving = true;
  });
  EXPECT_EQ(code, 5);
}

// A call in the background has made the progress thread, which a child does not have.
TEST(AtExit, AForkedChildLeavesItsParentsCommunicatorAlone) {
  const int code = way_out([] {
    static_ranks().group = local_group(2);
    std::vector<Communicator>& group = static_ranks().group;
    std::vector<float> a(10, 1.0F);
    std::vector<float> b(10, 2.0F);
    const Work first = group[0].all_reduce_async(a);
    group[1].all_reduce_async(b).wait();
    first.wait();
    static std::optional<GradientReducer> reducer;
    std::thread other([&] {
      GradientReducer second(group[1], {Parameter::gradient_only("w", b)});
      second.mark_ready(0);
      second.finish();
    });
    reducer.emplace(group[0], std::vector<Parameter>{Parameter::gradient_only("w", a)});
    reducer->mark_ready(0);
    reducer->finish();
    other.join();
    if (way_out([] {}) != 3) std::_Exit(4);
    // The parent's communicators still work.
    const Work again = group[0].barrier_async();
    group[1].barrier();
    again.wait();
    reducer.reset();
  });
  EXPECT_EQ(code, 3);
}

}  // namespace
}  // namespace rondo::test
