// What a rank may do with the others' buffers when a call fails.

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/errors.hpp>

#include "engine/direct.hpp"
#include "joining/wire.hpp"
#include "plan/call_signature.hpp"
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
    for (std::size_t rank = 0; rank < 2; ++rank) {
      shown_[rank].buffers = locations_of(group_[rank], calls_[rank]);
      presence(static_cast<int>(rank)).enter(shown_[rank]);
    }
    context_.begin_call(calls_[0], shown_[0].signature, std::chrono::minutes(5));
  }
  Presence& presence(int rank) { return group_[0].links.segment->presence(rank); }
  AbortBoard& board() { return group_[0].links.segment->board(); }
  bool run() { return direct_.run(calls_[0], shown_[0], false); }
  Failure failure_of_run() {
    try {
      run();
    } catch (const Failure& failure) {
      return failure;
    }
    ADD_FAILURE() << "the call has not failed";
    return {Cause::aborted, -1};
  }

  std::vector<Wiring> group_ = wire_local_group(2, {});
  Context context_{group_[0]};
  Direct direct_{context_};
  std::vector<float> buffers_[2] = {std::vector<float>(1000, 1.0F), std::vector<float>(1000, 2.0F)};
  Call calls_[2];
  ShownCall shown_[2];
};

TEST_F(DirectTest, HandlesItsChunkOfAllBuffers) {
  presence(1).begin_touching(0);
  presence(1).end_touching(0);
  EXPECT_TRUE(run());
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
  EXPECT_EQ(failure_of_run().cause, Cause::aborted);
  EXPECT_EQ(buffers_[0], std::vector<float>(1000, 1.0F));
  EXPECT_EQ(buffers_[1], std::vector<float>(1000, 2.0F));
  EXPECT_FALSE(presence(0).is_touching(0)) << "rank 1 would wait for ever";
  EXPECT_FALSE(presence(0).has_touched(0)) << "rank 1 would take rank 0's part as done";
}

TEST_F(DirectTest, AFailedRankWaitsForThoseThatTouchItsBuffers) {
  presence(1).begin_touching(0);
  board().raise(1, "the test ends it");
  EXPECT_EQ(failure_of_run().cause, Cause::aborted);
  std::atomic<bool> returned = false;
  std::atomic<pid_t> id = 0;
  std::thread failed([&] {
    id = ::gettid();
    context_.touching.withdraw();
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
  EXPECT_FALSE(direct_.run(calls_[0], shown_[0], true));
}

// Rank 1 has gone on to its next call, as a rank whose buffers cannot be reached may.
TEST_F(DirectTest, ARankThatHasGoneOnCouldNotBeReached) {
  ShownCall next = shown_[1];
  next.signature.sequence = 1;
  presence(1).enter(next);
  EXPECT_FALSE(direct_.run(calls_[0], shown_[0], true));
  try {
    direct_.throw_unreachable();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("those of another rank are not"), std::string::npos)
        << error.what();
  }
}

TEST_F(DirectTest, AnotherCallIsFoundBeforeAnythingIsTouched) {
  ShownCall other = shown_[1];
  other.signature.op = static_cast<std::uint8_t>(ReduceOp::max);
  presence(1).enter(other);
  const Failure failure = failure_of_run();
  EXPECT_EQ(failure.cause, Cause::other_call);
  EXPECT_EQ(failure.peer, 1);
  EXPECT_EQ(buffers_[1], std::vector<float>(1000, 2.0F));
}

}  // namespace
}  // namespace rondo::detail
