// Carries out the calls of one process group in their order.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace rondo::torch_backend {

// What is to be done, and whom to tell afterwards. Neither throws. Who is told may make other calls
// of the group, and wait for them: so a thread that tells leaves the turn to others.
struct Task {
  std::function<void()> call;
  std::function<void()> tell;
};

// A call runs on the thread that makes it where nothing is queued, else on a thread of the runner.
class Runner {
 public:
  Runner() = default;
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  // Carries out what is queued.
  ~Runner();

  // Queues a task.
  void start(Task task);
  // Carries out a task before it returns, after what is queued.
  void run(Task task);

 private:
  void serve();
  // Under the lock: whether a thread is needed for what is queued.
  void have_thread();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool busy_ = false;        // a thread carries out a call
  std::size_t waiting_ = 0;  // threads of the runner that have nothing to do
  bool stopping_ = false;
  std::vector<std::thread> threads_;  // one, and more where calls are made by whom is told
};

}  // namespace rondo::torch_backend
