// Which call runs next on a communicator.

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

// A thread that makes two calls, the second directly after the first. The first runs until
// go_on_and_end(), so that other calls can queue up behind it.
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

// Returns when the thread waits for its turn: when so many looks in a row have found it asleep that
// it cannot be a short wait for memory or a lock.
std::thread waiting_caller(CallQueue& queue, std::string& order, char name) {
  std::atomic<pid_t> id = 0;
  std::thread thread([&queue, &order, name, &id] {
    id = ::gettid();
    // The call must run on its caller's thread: MPI may allow calls on no other.
    queue.run([&order, name, caller = std::this_thread::get_id()] {
      order += std::this_thread::get_id() == caller ? name : '?';
    });
  });
  for (int looks = 0; looks < 100;) looks = id != 0 && test::is_asleep(id) ? looks + 1 : 0;
  return thread;
}

TEST(CallQueue, CallersThatWaitGoFirstInTheOrderInWhichTheyCame) {
  CallQueue queue;
  std::string order;  // written by the call that runs
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
