// A rank that sleeps until it is woken.

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

#include "carrier/bell.hpp"
#include "communicator/state.hpp"
#include "joining/wire.hpp"
#include "tests/support/asleep.hpp"

namespace rondo::detail {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

TEST(Bell, WakesASleeper) {
  Bell bell;
  const test::SleeperOn sleeper(bell);
  bell.ring();
}

TEST(Bell, DoesNotSleepWhenThereIsNothingToWaitFor) {
  Bell bell;
  bell.sleep([] { return true; }, seconds(1000));
}

TEST(Bell, EndsASleepThatNobodyEnds) {
  Bell bell;
  int looks = 0;
  for (int sleep = 0; sleep < 3; ++sleep) {
    bell.sleep(
        [&] {
          ++looks;
          return false;
        },
        microseconds(100));
  }
  EXPECT_EQ(looks, 3);
}

// What rank 0 does in `call` must ring rank 1's bell; then rank 1 makes the same call.
void expect_rung(const std::function<void(Communicator&)>& call) {
  std::vector<Wiring> wirings = wire_local_group(2, {});
  Bell& bell = wirings[0].links.segment->bell(1);
  std::vector<Communicator> group;
  for (Wiring& wiring : wirings) {
    group.emplace_back(
        std::make_unique<CommunicatorState>(std::move(wiring), Defaults{}, CommunicatorOptions{}));
  }
  std::thread caller;
  {
    const test::SleeperOn sleeper(bell);
    caller = std::thread([&] { call(group[0]); });
  }
  call(group[1]);
  caller.join();
}

TEST(Bell, IsRungWhenASlotIsPublished) {
  expect_rung([](Communicator& comm) {
    std::vector<float> data(10);
    comm.broadcast(data, 0, {.algorithm = Algorithm::ring});
  });
}

TEST(Bell, IsRungWhenABoxIsPosted) {
  expect_rung([](Communicator& comm) { comm.barrier({.algorithm = Algorithm::one_shot}); });
}

}  // namespace
}  // namespace rondo::detail
