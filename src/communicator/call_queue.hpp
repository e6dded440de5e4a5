// The order of calls on one communicator: a thread that runs what is queued, and a way past it for
// blocking calls that find nothing queued.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace rondo::detail {

// Shared by the queue and by every Work that stands for the call.
struct WorkState {
  std::mutex mutex;
  std::condition_variable finished;
  bool done = false;
  std::exception_ptr error;

  void finish(std::exception_ptr outcome) noexcept;
  void wait();
};

class CallQueue {
 public:
  CallQueue() = default;
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;
  // Runs what is queued, then ends the thread.
  ~CallQueue();

  // Runs `call` on this thread if nothing is queued, else on the progress thread after what is;
  // returns when it is done and throws what it threw.
  template <class Function>
  void run(Function&& call) {
    std::unique_lock lock(mutex_);
    // Another thread's blocking call is waited for here, so that this one stays on its own thread.
    changed_.wait(lock, [this] { return !running_ || !queue_.empty(); });
    if (!queue_.empty()) {
      const auto state = push(std::forward<Function>(call));
      lock.unlock();
      state->wait();
      return;
    }
    running_ = true;
    lock.unlock();
    const Turn turn(*this);
    call();
  }

  std::shared_ptr<WorkState> run_async(std::function<void()> call);

 private:
  struct Entry {
    std::function<void()> call;
    std::shared_ptr<WorkState> state;
  };
  // The right to run a call; given back on the way out.
  class Turn {
   public:
    explicit Turn(CallQueue& queue) : queue_(queue) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn();

   private:
    CallQueue& queue_;
  };

  std::shared_ptr<WorkState> push(std::function<void()> call);  // with the lock held
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> queue_;
  bool running_ = false;
  bool stopping_ = false;
  std::thread thread_;  // started by the first call that needs it
};

}  // namespace rondo::detail
