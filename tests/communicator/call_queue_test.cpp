// Who has the next turn on a communicator.

#include <atomic>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "communicator/call_queue.hpp"
#include "tests/support/asleep.hpp"

namespace rondo::detail {
namespace {

// A thread that makes two calls, the second at once after the first, which others have time to wait for.
class TwoCalls {
 public:
  TwoCalls(CallQueue& queue, std::string& order)
      : thread_([&] {
          queue.run([&] {
            has_the_turn_.count_down();
            may_go_on_.wait();
            order += '1';
          });
          queue.run([&] { order += '2'; });
        }) {
    has_the_turn_.wait();
  }
  void go_on_and_end() {
    may_go_on_.count_down();
    thread_.join();
  }

 private:
  std::latch has_the_turn_{1};
  std::latch may_go_on_{1};
  std::thread thread_;
};

// Returns when the thread sleeps until its turn comes: when it has slept in so many looks, one after the other,
// that it is no short wait for memory or a lock.
std::thread waiting_caller(CallQueue& queue, std::string& order, char name) {
  std::atomic<pid_t> id = 0;
  std::thread thread([&queue, &order, name, &id] {
    id = ::gettid();
    // On its own thread, which alone MPI may know.
    queue.run([&order, name, caller = std::this_thread::get_id()] {
      order += std::this_thread::get_id() == caller ? name : '?';
    });
  });
  for (int looks = 0; looks < 100;) looks = id != 0 && test::is_asleep(id) ? looks + 1 : 0;
  return thread;
}

TEST(CallQueue, CallersThatWaitGoFirstInTheOrderInWhichTheyCame) {
  CallQueue queue;
  std::string order;  // written by who has the turn
  TwoCalls two(queue, order);
  std::thread a = waiting_caller(queue, order, 'a');
  std::thread b = waiting_caller(queue, order, 'b');
  two.go_on_and_end();
  a.join();
  b.join();
  EXPECT_EQ(order, "1ab2");
}

TEST(CallQueue, WhatIsQueuedGoesFirst) {
  CallQueue queue;
  std::string order;
  TwoCalls two(queue, order);
  const std::shared_ptr<WorkState> a = queue.run_async([&order] { order += 'a'; });
  const std::shared_ptr<WorkState> b = queue.run_async([&order] { order += 'b'; });
  two.go_on_and_end();
  a->wait();
  b->wait();
  EXPECT_EQ(order, "1ab2");
}

}  // namespace
}  // namespace rondo::detail
