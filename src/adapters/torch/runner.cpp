#include "runner.hpp"

#include <future>
#include <utility>

namespace rondo::torch_backend {

Runner::~Runner() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Runner::start(std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
  calls_.push_back(std::move(call));
  changed_.notify_all();
}

void Runner::run(const std::function<void()>& call) {
  {
    std::unique_lock lock(mutex_);
    if (busy_ || !calls_.empty()) {
      lock.unlock();
      std::promise<void> done;
      start([&] {
        call();
        done.set_value();
      });
      done.get_future().wait();
      return;
    }
    busy_ = true;
  }
  call();
  const std::lock_guard lock(mutex_);
  busy_ = false;
  changed_.notify_all();
}

void Runner::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !busy_ && (stopping_ || !calls_.empty()); });
    if (calls_.empty()) return;
    const std::function<void()> call = std::move(calls_.front());
    calls_.pop_front();
    busy_ = true;
    lock.unlock();
    call();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace rondo::torch_backend
