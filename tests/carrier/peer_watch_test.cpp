// Whether another process of this host has ended.

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <vector>

#include <gtest/gtest.h>

#include "carrier/peer_watch.hpp"

namespace rondo::detail {
namespace {

// A child process; the destructor ends and reaps it.
class Child {
 public:
  Child() : id_(::fork()) {
    while (id_ == 0) ::pause();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    end();
    reap();
  }
  [[nodiscard]] pid_t id() const { return id_; }
  // No other process can get its process id until it is reaped.
  void end() {
    if (ended_) return;
    ended_ = true;
    ::kill(id_, SIGKILL);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOWAIT);
  }
  void reap() {
    if (reaped_) return;
    reaped_ = true;
    ::waitpid(id_, nullptr, 0);
  }

 private:
  pid_t id_;
  bool ended_ = false;
  bool reaped_ = false;
};

TEST(PeerWatch, KnowsWhoHasEnded) {
  Child lives;
  Child ends;
  PeerWatch watch;
  ASSERT_EQ(watch.watch(1, lives.id()), 0);
  ASSERT_EQ(watch.watch(3, ends.id()), 0);
  EXPECT_FALSE(watch.ended(3));
  EXPECT_TRUE(watch.ended().empty());
  ends.end();
  EXPECT_TRUE(watch.ended(3));
  EXPECT_FALSE(watch.ended(1));
  EXPECT_FALSE(watch.ended(0));  // nobody watches it
  EXPECT_FALSE(watch.ended(4));
  EXPECT_EQ(watch.ended(), std::vector<int>{3});
}

// Watches of one process share a descriptor, but not with a later process that gets the same process id.
TEST(PeerWatch, LooksAgainForAProcessThatHasEnded) {
  Child child;
  PeerWatch first;
  ASSERT_EQ(first.watch(0, child.id()), 0);
  child.end();
  child.reap();
  PeerWatch second;
  EXPECT_EQ(second.watch(0, child.id()), ESRCH);
  EXPECT_TRUE(first.ended(0));
  EXPECT_FALSE(second.ended(0));
}

}  // namespace
}  // namespace rondo::detail
