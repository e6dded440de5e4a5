// A rank that sleeps until it is woken.

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "carrier/bell.hpp"

namespace rondo::detail {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

TEST(Bell, WakesASleeper) {
  Bell bell;
  std::atomic<bool> ready = false;
  std::atomic<bool> awake = false;
  std::thread sleeper([&] {
    while (!ready.load()) bell.sleep([&] { return ready.load(); }, seconds(1000));
    awake = true;
  });
  ready = true;
  // A ring may cross with the sleeper's word that it sleeps; nobody rings once only here.
  while (!awake.load()) bell.ring();
  sleeper.join();
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

}  // namespace
}  // namespace rondo::detail
