// Orders the calls on one communicator: a progress thread runs queued calls; a blocking call runs
// on its caller's thread if nothing is queued.
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

  // Runs `call` on this thread if nothing is queued, else on the progress thread after the queued
  // calls; returns when it is done and throws what it threw. Takes no lock if no other thread
  // calls.
  template <class Function>
  void run(Function&& call) {
    if (!take_free_turn() && !wait_for_turn()) {
      run_async(std::forward<Function>(call))->wait();
      return;
    }
    const Turn turn(*this);
    call();
  }

  // Throws TransportError if the progress thread cannot be started; then the call is not queued.
  std::shared_ptr<WorkState> run_async(std::function<void()> call);

 private:
  struct QueuedCall {
    std::function<void()> call;
    std::shared_ptr<WorkState> state;
  };
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
  //   kFree    no thread has it, and nothing is queued
  //   kTaken   a caller has it, and no thread waits for it
  //   kWanted  a thread has it, and the next holder is chosen with the lock held
  // Taken with acquire and given back with release, so that a call sees what the previous call
  // wrote.
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
  // Waits until this thread has the turn; false if a call is queued, which goes first.
  bool wait_for_turn();
  void pass_turn_on();
  // The caller holds the lock: whether the turn was free. In any case it is kWanted afterwards.
  bool want_turn();
  void serve();

  std::atomic<std::uint32_t> turn_ = kFree;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<QueuedCall> queue_;
  std::deque<std::uint64_t> waiting_;  // tickets of the callers in wait_for_turn, oldest first
  std::uint64_t next_ticket_ = 1;
  std::uint64_t granted_ = 0;  // the ticket to which the turn was handed; 0: none
  bool serving_ = false;       // the progress thread has the turn
  bool stopping_ = false;
  std::thread thread_;  // started by the first call that needs it
};

}  // namespace rondo::detail
