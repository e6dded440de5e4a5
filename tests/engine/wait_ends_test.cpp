// What ends a wait before what is waited for has come.

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
    EXPECT_EQ(found->result, WaitResult::other_call);
    EXPECT_EQ(found->peer, rank);
    EXPECT_EQ(found->other_call, other_call());
  }

  std::vector<Wiring> group_ = wire_local_group(3, {});
  Signature mine_;
  WaitEnds ends_{group_[0]};
};

TEST_F(WaitEndsTest, NothingAsLongAsOthersAreOnlyLate) {
  EXPECT_FALSE(ends_.find_missing(1, true));
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
  EXPECT_FALSE(ends_.find_missing(1, false)) << "rank 1 alone was asked for";
  const auto found = ends_.find_missing(1, true);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->result, WaitResult::peer_left);
  EXPECT_EQ(found->peer, 2);
}

TEST_F(WaitEndsTest, NotARankThatHasLeftAfterTheCall) {
  segment().presence(2).enter({mine_, {}});
  segment().presence(2).end(7);
  segment().presence(2).leave();
  EXPECT_FALSE(ends_.find_missing(1, true));
}

TEST_F(WaitEndsTest, ThePeerThatHasLeft) {
  segment().presence(1).leave();
  const auto found = ends_.find_missing(1, false);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->result, WaitResult::peer_left);
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
