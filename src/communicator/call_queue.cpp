#include "communicator/call_queue.hpp"

#include <algorithm>
#include <utility>

#include <rondo/work.hpp>

#include "base/threads.hpp"

namespace rondo {
namespace detail {

void WorkState::finish(std::exception_ptr outcome) noexcept {
  const std::lock_guard lock(mutex);
  error = std::move(outcome);
  done = true;
  finished.notify_all();
}

void WorkState::wait() {
  std::unique_lock lock(mutex);
  finished.wait(lock, [this] { return done; });
  if (error) std::rethrow_exception(error);
}

CallQueue::~CallQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

bool CallQueue::want_turn() { return turn_.exchange(kWanted, std::memory_order_acquire) == kFree; }

bool CallQueue::wait_for_turn() {
  std::unique_lock lock(mutex_);
  if (!queue_.empty()) return false;
  if (want_turn()) return true;
  const std::uint64_t ticket = next_ticket_++;
  waiting_.push_back(ticket);
  changed_.wait(lock, [&] { return granted_ == ticket || !queue_.empty(); });
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), ticket));
  if (granted_ != ticket) return false;
  granted_ = 0;
  return true;
}

void CallQueue::pass_turn_on() {
  const std::lock_guard lock(mutex_);
  serving_ = !queue_.empty();
  // Handed to the thread that has waited longest: else one that calls again at once would always be
  // faster.
  if (!serving_ && !waiting_.empty()) granted_ = waiting_.front();
  if (!serving_ && granted_ == 0) turn_.store(kFree, std::memory_order_release);
  changed_.notify_all();
}

std::shared_ptr<WorkState> CallQueue::run_async(std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  auto state = std::make_shared<WorkState>();
  if (!thread_.joinable()) thread_ = start_thread("makes calls", [this] { serve(); });
  queue_.push_back({std::move(call), state});
  if (want_turn()) serving_ = true;
  changed_.notify_all();
  return state;
}

void CallQueue::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return serving_ || (stopping_ && queue_.empty()); });
    if (!serving_) return;
    const QueuedCall entry = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      entry.call();
    } catch (...) {
      error = std::current_exception();
    }
    entry.state->finish(std::move(error));
    pass_turn_on();
    lock.lock();
  }
}

}  // namespace detail

void Work::wait() const {
  if (state_) state_->wait();
}

bool Work::done() const {
  if (!state_) return true;
  const std::lock_guard lock(state_->mutex);
  return state_->done;
}

}  // namespace rondo
