// What ends a wait before what is waited for has come.

#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "engine/wait_ends.hpp"
#include "joining/wire.hpp"

namespace rondo::detail {
namespace {

// Rank 0 of three, which is in call 7 and waits for rank 1.
class WaitEndsTest : public testing::Test {
 protected:
  WaitEndsTest() {
    mine_.sequence = 7;
    mine_.count = 100;
    ends_.begin_call(mine_);
    segment().presence(0).enter({mine_, {}});
  }
  HostSegment& segment() { return *group_[0].links.segment; }
  // Of another rank: a call with the number that rank 0's has.
  Signature other_call() const {
    Signature call = mine_;
    call.root = 2;
    return call;
  }
  void expect_other_call(int rank) {
    const auto found = ends_.find_other_call(1, false);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->cause, Cause::other_call);
    EXPECT_EQ(found->peer, rank);
    EXPECT_EQ(found->other_call, other_call());
  }

  std::vector<Wiring> group_ = wire_local_group(3, {});
  Signature mine_;
  WaitEnds ends_{group_[0]};
};

TEST_F(WaitEndsTest, NothingAsLongAsOthersAreOnlyLate) {
  EXPECT_FALSE(ends_.find_missing(1, true, Clock::now()));
  EXPECT_FALSE(ends_.find_other_call(1, true));
  Signature before = other_call();
  before.sequence = 6;
  segment().presence(2).enter({before, {}});
  EXPECT_FALSE(ends_.find_other_call(1, true)) << "rank 2 is still in the call before";
  segment().presence(2).enter({mine_, {}});
  EXPECT_FALSE(ends_.find_other_call(1, true));
}

TEST_F(WaitEndsTest, ARankThatHasLeftBeforeTheCall) {
  segment().presence(2).leave();
  EXPECT_FALSE(ends_.find_missing(1, false, Clock::now())) << "rank 1 alone was asked for";
  const auto found = ends_.find_missing(1, true, Clock::now());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->cause, Cause::peer_left);
  EXPECT_EQ(found->peer, 2);
}

TEST_F(WaitEndsTest, NotARankThatHasLeftAfterTheCall) {
  segment().presence(2).enter({mine_, {}});
  segment().presence(2).end(7);
  segment().presence(2).leave();
  EXPECT_FALSE(ends_.find_missing(1, true, Clock::now()));
}

TEST_F(WaitEndsTest, ThePeerThatHasLeft) {
  segment().presence(1).leave();
  const auto found = ends_.find_missing(1, false, Clock::now());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->cause, Cause::peer_left);
  EXPECT_EQ(found->peer, 1);
}

// Members 5, 6 and 7 of a communicator that was split are the ranks 0, 1 and 2 of this one.
TEST_F(WaitEndsTest, AProcessElsewhereThatHasEndedIfItIsWaitedFor) {
  int both[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, both), 0);
  std::vector<ProcessName> names(8);
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = 100 + i;
  const auto watch = std::make_shared<HostWatch>(names);
  watch->add_link(7, FileDescriptor(both[0]));
  group_[0].waiting.hosts = watch;
  group_[0].waiting.watched_as = {5, 6, 7};
  ::close(both[1]);
  while (watch->gone().empty()) std::this_thread::yield();
  const Clock::time_point long_ago = Clock::now() - std::chrono::minutes(1);
  EXPECT_EQ(find_gone_rank(group_[0])->peer, 2);
  EXPECT_FALSE(ends_.find_missing(1, true, long_ago))
      << "rank 2 may have made its part of the call";
  EXPECT_FALSE(ends_.find_missing(2, true, Clock::now() + std::chrono::minutes(1)))
      << "what it has sent may be on its way";
  std::optional<Failure> found;
  while (!found) found = ends_.find_missing(2, true, long_ago);
  EXPECT_EQ(found->cause, Cause::peer_ended);
  EXPECT_EQ(found->peer, 2);
}

// Rank 2's process has ended because that of rank 1 had.
TEST_F(WaitEndsTest, TheFirstOfTwoThatHaveEndedIsNamed) {
  int first[2];
  int second[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, first), 0);
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, second), 0);
  const auto watch = std::make_shared<HostWatch>(std::vector<ProcessName>{200, 201, 202});
  watch->add_link(1, FileDescriptor(first[0]));
  watch->add_link(2, FileDescriptor(second[0]));
  group_[0].waiting.hosts = watch;
  group_[0].waiting.watched_as = {0, 1, 2};
  ::close(first[1]);
  while (watch->gone().empty()) std::this_thread::yield();
  ::close(second[1]);
  while (watch->gone().size() < 2) std::this_thread::yield();
  std::optional<Failure> found;
  while (!found) found = ends_.find_missing(2, true, Clock::now() - std::chrono::minutes(1));
  EXPECT_EQ(found->cause, Cause::peer_ended);
  EXPECT_EQ(found->peer, 1);
}

TEST_F(WaitEndsTest, ARankThatShowsAnotherCall) {
  segment().presence(2).enter({other_call(), {}});
  expect_other_call(2);
}

TEST_F(WaitEndsTest, ARankThatHasSentSomethingOfAnotherCall) {
  SendEnd& end = group_[2].links.to[0];
  ASSERT_TRUE(end.can_acquire());
  end.slot()->signature = other_call();
  end.publish();
  expect_other_call(2);
}

}  // namespace
}  // namespace rondo::detail
