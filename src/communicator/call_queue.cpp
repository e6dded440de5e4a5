#include "communicator/call_queue.hpp"

#include <utility>

#include <rondo/work.hpp>

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

CallQueue::Turn::~Turn() {
  const std::lock_guard lock(queue_.mutex_);
  queue_.running_ = false;
  queue_.changed_.notify_all();
}

std::shared_ptr<WorkState> CallQueue::push(std::function<void()> call) {
  auto state = std::make_shared<WorkState>();
  if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
  queue_.push_back({std::move(call), state});
  changed_.notify_all();
  return state;
}

std::shared_ptr<WorkState> CallQueue::run_async(std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  return push(std::move(call));
}

void CallQueue::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return queue_.empty() ? stopping_ : !running_; });
    if (queue_.empty()) return;
    const Entry entry = std::move(queue_.front());
    queue_.pop_front();
    running_ = true;
    lock.unlock();
    std::exception_ptr error;
    try {
      entry.call();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    running_ = false;
    entry.state->finish(std::move(error));
    changed_.notify_all();
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
