// A rank that sleeps until it is woken.

#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

#include "carrier/bell.hpp"
#include "communicator/state.hpp"
#include "tests/support/asleep.hpp"

namespace rondo::detail {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

// One that nobody wakes sleeps for longer than the test may take.
constexpr auto kForever = seconds(1000);

TEST(Bell, WakesASleeper) {
  Bell bell;
  std::atomic<bool> looked = false;
  std::atomic<pid_t> id = 0;
  std::thread sleeper([&] {
    id = ::gettid();
    bell.sleep([&] { return looked.exchange(true); }, kForever);
  });
  while (!looked) std::this_thread::yield();
  test::wait_until_asleep(id);
  bell.ring();
  sleeper.join();
}

TEST(Bell, DoesNotSleepWhenThereIsNothingToWaitFor) {
  Bell bell;
  bell.sleep([] { return true; }, kForever);
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

// Somebody sleeps on the bell of rank `of`, until what `call` makes rank `by` do rings it; then rank `of` makes the
// same call.
void expect_rung(int of, int by, const std::function<void(Communicator&)>& call) {
  std::vector<Communicator> group = local_group(2, {.timeout = seconds(60)});
  Bell& bell = state_of(group[0]).engine.wiring().segment->bell(of);
  std::atomic<bool> looked = false;
  std::atomic<pid_t> id = 0;
  std::thread sleeper([&] {
    id = ::gettid();
    bell.sleep([&] { return looked.exchange(true); }, kForever);
  });
  while (!looked) std::this_thread::yield();
  test::wait_until_asleep(id);
  std::thread caller([&] { call(group[static_cast<std::size_t>(by)]); });
  sleeper.join();
  call(group[static_cast<std::size_t>(of)]);
  caller.join();
}

TEST(Bell, IsRungWhenASlotIsPublished) {
  expect_rung(1, 0, [](Communicator& comm) {
    std::vector<float> data(10);
    comm.broadcast(data, 0, {.algorithm = Algorithm::ring});
  });
}

TEST(Bell, IsRungWhenABoxIsPosted) {
  expect_rung(1, 0, [](Communicator& comm) { comm.barrier({.algorithm = Algorithm::one_shot}); });
}

// Rank 0 has filled all slots towards rank 1 and waits for one: rank 1's part of the call frees it.
TEST(Bell, IsRungWhenASlotIsReleased) {
  std::vector<Communicator> group =
      local_group(2, {.timeout = seconds(60), .slot_bytes = 64, .slots = 2});
  Bell& bell = state_of(group[0]).engine.wiring().segment->bell(0);
  std::atomic<bool> looked = false;
  std::atomic<pid_t> id = 0;
  // Not rank 0 itself, which sleeps for a millisecond at most.
  std::thread sleeper([&] {
    id = ::gettid();
    bell.sleep([&] { return looked.exchange(true); }, kForever);
  });
  while (!looked) std::this_thread::yield();
  test::wait_until_asleep(id);
  // Its own calls ring no bell of its own; what rank 1 receives does.
  std::vector<float> a(1000);
  std::vector<float> b(1000);
  const Work root = group[0].broadcast_async(a, 0, {.algorithm = Algorithm::naive});
  group[1].broadcast(b, 0, {.algorithm = Algorithm::naive});
  sleeper.join();
  root.wait();
}

}  // namespace
}  // namespace rondo::detail
