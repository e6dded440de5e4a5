// What a rank may do with the others' buffers when a call fails.

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/call_text.hpp"
#include "engine/direct.hpp"
#include "joining/wire.hpp"
#include "tests/support/asleep.hpp"

namespace rondo::detail {
namespace {

// Two ranks that have shown their buffers for an all_reduce. Rank 0 makes the call.
class DirectTest : public testing::Test {
 protected:
  DirectTest() {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      calls_[rank] = {.collective = Collective::all_reduce,
                      .in = buffers_[rank].data(),
                      .out = buffers_[rank].data(),
                      .count = buffers_[rank].size()};
      shown_[rank] = {signature_of(calls_[rank], Algorithm::direct, 2), {}};
    }
    shown_[0].buffers = direct_.locations_of(calls_[0]);
    shown_[1].buffers = Direct(group_[1], waiter_, touching_).locations_of(calls_[1]);
    waiter_.begin_call(shown_[0].signature, std::chrono::minutes(5), false);
    touching_.begin_call(calls_[0], 0);
    for (int rank = 0; rank < 2; ++rank) {
      presence(rank).enter(shown_[static_cast<std::size_t>(rank)]);
    }
  }
  Presence& presence(int rank) { return group_[0].links.segment->presence(rank); }
  AbortBoard& board() { return group_[0].links.segment->board(); }
  Direct::Outcome run() { return direct_.run(calls_[0], shown_[0], false); }

  std::vector<Wiring> group_ = wire_local_group(2, {});
  Waiter waiter_{group_[0]};
  Touching touching_{group_[0], waiter_};
  Direct direct_{group_[0], waiter_, touching_};
  std::vector<float> buffers_[2] = {std::vector<float>(1000, 1.0F), std::vector<float>(1000, 2.0F)};
  Call calls_[2];
  ShownCall shown_[2];
};

TEST_F(DirectTest, HandlesItsChunkOfAllBuffers) {
  presence(1).begin_touching(0);
  presence(1).end_touching(0);
  EXPECT_EQ(run(), Direct::Outcome::done);
  for (std::size_t i = 0; i < 1000; ++i) {
    // Rank 1, which only pretends, has not handled its chunk.
    const bool handled = i < chunk_range(1000, 2, 0, 16).count;
    ASSERT_EQ(buffers_[0][i], handled ? 3.0F : 1.0F) << i;
    ASSERT_EQ(buffers_[1][i], handled ? 3.0F : 2.0F) << i;
  }
}

// Rank 1 may have returned from the call that failed, and may have freed its buffer.
TEST_F(DirectTest, TouchesNothingOnceTheCommunicatorHasEnded) {
  board().raise(1, "the test ends it");
  EXPECT_EQ(run(), Direct::Outcome::failed);
  EXPECT_EQ(direct_.failure().result, WaitResult::aborted);
  EXPECT_EQ(buffers_[0], std::vector<float>(1000, 1.0F));
  EXPECT_EQ(buffers_[1], std::vector<float>(1000, 2.0F));
  EXPECT_FALSE(presence(0).is_touching(0)) << "rank 1 would wait for ever";
  EXPECT_FALSE(presence(0).has_touched(0)) << "rank 1 would take rank 0's part as done";
}

TEST_F(DirectTest, AFailedRankWaitsForThoseThatTouchItsBuffers) {
  presence(1).begin_touching(0);
  board().raise(1, "the test ends it");
  EXPECT_EQ(run(), Direct::Outcome::failed);
  std::atomic<bool> returned = false;
  std::atomic<pid_t> id = 0;
  std::thread failed([&] {
    id = ::gettid();
    touching_.withdraw();
    returned = true;
  });
  while (!returned && !test::is_asleep(id)) std::this_thread::yield();
  EXPECT_FALSE(returned);
  presence(1).end_touching(0);
  failed.join();
}

TEST_F(DirectTest, ARankWhoseBuffersCannotBeReachedDoesNotWait) {
  shown_[0].buffers.in = kUnreachable;
  shown_[0].signature.sequence = 1;  // which rank 1 has not entered
  EXPECT_EQ(direct_.run(calls_[0], shown_[0], true), Direct::Outcome::unreachable);
}

// Rank 1 has gone on to its next call, as a rank whose buffers cannot be reached may.
TEST_F(DirectTest, ARankThatHasGoneOnCouldNotBeReached) {
  ShownCall next = shown_[1];
  next.signature.sequence = 1;
  presence(1).enter(next);
  EXPECT_EQ(direct_.run(calls_[0], shown_[0], true), Direct::Outcome::unreachable);
  EXPECT_EQ(direct_.unreachable_rank(), std::nullopt);
}

TEST_F(DirectTest, AnotherCallIsFoundBeforeAnythingIsTouched) {
  ShownCall other = shown_[1];
  other.signature.op = static_cast<std::uint8_t>(ReduceOp::max);
  presence(1).enter(other);
  EXPECT_EQ(run(), Direct::Outcome::failed);
  EXPECT_EQ(direct_.failure().result, WaitResult::other_call);
  EXPECT_EQ(direct_.failure().peer, 1);
  EXPECT_EQ(buffers_[1], std::vector<float>(1000, 2.0F));
}

}  // namespace
}  // namespace rondo::detail
