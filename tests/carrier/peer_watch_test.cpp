// Whether another process of this host has ended.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
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
  ASSERT_EQ(watch.watch(1, lives.id(), 0), 0);
  ASSERT_EQ(watch.watch(3, ends.id(), 0), 0);
  EXPECT_FALSE(watch.ended(3));
  EXPECT_TRUE(watch.ended().empty());
  ends.end();
  EXPECT_TRUE(watch.ended(3));
  EXPECT_FALSE(watch.ended(1));
  EXPECT_FALSE(watch.ended(0));  // nobody watches it
  EXPECT_FALSE(watch.ended(4));
  EXPECT_EQ(watch.ended(), std::vector<int>{3});
}

// Watches of one process share a descriptor, but not with a later process that gets the same
// process id.
TEST(PeerWatch, LooksAgainForAProcessThatHasEnded) {
  Child child;
  PeerWatch first;
  ASSERT_EQ(first.watch(0, child.id(), 0), 0);
  child.end();
  child.reap();
  PeerWatch second;
  EXPECT_EQ(second.watch(0, child.id(), 0), ESRCH);
  EXPECT_TRUE(first.ended(0));
  EXPECT_FALSE(second.ended(0));
}

TEST(PeerWatch, WithoutADescriptorLeftNeedsTheSignOfLife) {
  Child child;
  static_cast<void>(life_sign_of_this_process());
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit none{0, usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  PeerWatch watch;
  const int by_id = watch.watch(0, child.id(), 0);
  const int by_both = watch.watch(1, child.id(), 12345);  // which nobody has
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  EXPECT_EQ(by_id, EMFILE);
  EXPECT_EQ(by_both, 0);
  EXPECT_FALSE(watch.ended(0));
  EXPECT_TRUE(watch.ended(1)) << "nobody has that sign, and there is no descriptor for its id";
}

TEST(PeerWatch, AProcessThatHasClosedItsSignLives) {
  Child child;
  PeerWatch watch;
  ASSERT_EQ(watch.watch(0, child.id(), 12345), 0);  // which nobody has
  EXPECT_FALSE(watch.ended(0));
  child.end();
  EXPECT_TRUE(watch.ended(0));
}

// In a process of its own, whose descriptors are all closed, and all become readable sockets of the
// program.
TEST(PeerWatch, ADescriptorThatTheProgramHasClosedAndUsesItselfSaysNothing) {
  const pid_t process = ::fork();
  if (process == 0) {
    Child child;
    int pair[2];
    constexpr int kMost = 64;
    auto* watch = new PeerWatch;
    if (watch->watch(0, child.id(), 0) != 0) ::_exit(1);
    ::closefrom(3);
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) ::_exit(2);
    for (const int end : pair) ::send(end, "x", 1, 0);
    for (int number = pair[1] + 1; number < kMost; ++number) ::dup2(pair[0], number);
    if (watch->ended(0) || !watch->ended().empty()) ::_exit(3);
    child.end();
    if (!watch->ended(0) || watch->ended() != std::vector<int>{0}) ::_exit(4);
    delete watch;
    for (int number = pair[0]; number < kMost; ++number) {
      if (::fcntl(number, F_GETFD) < 0) ::_exit(5);
    }
    child.reap();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(process, &status, 0);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
}

TEST(LifeSign, GoesWithItsProcessAloneAlsoWhereAChildLives) {
  int line[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, line), 0);
  const LifeSign mine = life_sign_of_this_process();
  ASSERT_NE(mine, 0U);
  EXPECT_EQ(life_sign_of_this_process(), mine);
  EXPECT_EQ(shows_life(mine), true);
  const pid_t process = ::fork();
  if (process == 0) {
    ::close(line[0]);
    const LifeSign sign = life_sign_of_this_process();
    ::send(line[1], &sign, sizeof(sign), 0);
    if (::fork() == 0) {  // ends when the test does
      char none = 0;
      ::send(line[1], &none, 1, 0);  // by now this process has let go of the sign
      ::recv(line[1], &none, 1, 0);
      ::_exit(0);
    }
    ::pause();
  }
  ::close(line[1]);
  LifeSign theirs = 0;
  ASSERT_EQ(::recv(line[0], &theirs, sizeof(theirs), MSG_WAITALL),
            static_cast<ssize_t>(sizeof(theirs)));
  char begun = 0;
  ASSERT_EQ(::recv(line[0], &begun, 1, MSG_WAITALL), 1);
  EXPECT_NE(theirs, mine);
  EXPECT_EQ(shows_life(theirs), true);
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
  EXPECT_EQ(shows_life(theirs), false);
  EXPECT_EQ(shows_life(mine), true);
  ::close(line[0]);
}

}  // namespace
}  // namespace rondo::detail
