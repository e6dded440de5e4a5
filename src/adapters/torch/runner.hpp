// Carries out the calls of one process group in their order.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace rondo::torch_backend {

// A call runs on the thread that makes it where nothing is queued, else on the runner's thread.
class Runner {
 public:
  Runner() = default;
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  // Carries out what is queued.
  ~Runner();

  // Queues a call, which must not throw.
  void start(std::function<void()> call);
  // Carries out a call before it returns. Other calls that this thread's call comes after end
  // first.
  void run(const std::function<void()>& call);

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> calls_;
  bool busy_ = false;  // a thread carries out a call
  bool stopping_ = false;
  std::thread thread_;  // started by the first call that is queued
};

}  // namespace rondo::torch_backend
