// The order of calls on one communicator: a thread that runs what is queued, and a way past it for
// blocking calls that find nothing queued.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
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
  // returns when it is done and throws what it threw. When nobody else calls, this takes no lock.
  template <class Function>
  void run(Function&& call) {
    if (!take_free_turn() && !wait_for_turn()) {
      run_async(std::forward<Function>(call))->wait();
      return;
    }
    const Turn turn(*this);
    call();
  }

  std::shared_ptr<WorkState> run_async(std::function<void()> call);

 private:
  struct Entry {
    std::function<void()> call;
    std::shared_ptr<WorkState> state;
  };
  // Gives the turn back on the way out.
  class Turn {
   public:
    explicit Turn(CallQueue& queue) : queue_(queue) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { queue_.give_turn_back(); }

   private:
    CallQueue& queue_;
  };

  // The turn is the right to run a call. Its holder is a caller's thread or the progress thread.
  //   kFree    nobody has it, and nothing is queued
  //   kTaken   a caller has it, and nobody waits for it
  //   kWanted  someone has it, and who comes next is settled with the lock held
  // Taken with acquire and given back with release, so that a call sees what the one before it left.
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kTaken = 1;
  static constexpr std::uint32_t kWanted = 2;

  bool take_free_turn() {
    std::uint32_t expected = kFree;
    return turn_.compare_exchange_strong(expected, kTaken, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }
  void give_turn_back() {
    std::uint32_t expected = kTaken;
    if (!turn_.compare_exchange_strong(expected, kFree, std::memory_order_release,
                                       std::memory_order_relaxed)) {
      pass_turn_on();
    }
  }
  // Until this thread has the turn; false when something is queued, which goes first.
  bool wait_for_turn();
  void pass_turn_on();
  // With the lock held: whether the turn was free. In any case it is kWanted afterwards.
  bool want_turn();
  void serve();

  std::atomic<std::uint32_t> turn_ = kFree;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> queue_;
  std::deque<std::uint64_t> waiting_;  // tickets of the callers in wait_for_turn, oldest first
  std::uint64_t next_ticket_ = 1;
  std::uint64_t granted_ = 0;  // to whom of them the turn was handed; 0: to nobody
  bool serving_ = false;       // the progress thread has the turn
  bool stopping_ = false;
  std::thread thread_;  // started by the first call that needs it
};

}  // namespace rondo::detail
