#include "runner.hpp"

#include <future>
#include <memory>
#include <utility>

namespace rondo::torch_backend {

Runner::~Runner() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();  // whom it told has let go of the group
    } else {
      thread.join();
    }
  }
}

void Runner::have_thread() {
  if (waiting_ == 0) threads_.emplace_back([this] { serve(); });
}

void Runner::start(Task task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  have_thread();
  changed_.notify_all();
}

void Runner::run(Task task) {
  {
    std::unique_lock lock(mutex_);
    if (busy_ || !tasks_.empty()) {
      lock.unlock();
      const auto done = std::make_shared<std::promise<void>>();
      start({std::move(task.call), [done, tell = std::move(task.tell)] {
               tell();
               done->set_value();
             }});
      done->get_future().wait();
      return;
    }
    busy_ = true;
  }
  task.call();
  {
    const std::lock_guard lock(mutex_);
    busy_ = false;
  }
  changed_.notify_all();
  task.tell();
}

void Runner::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++waiting_;
    changed_.wait(lock, [this] { return !busy_ && (stopping_ || !tasks_.empty()); });
    --waiting_;
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    busy_ = true;
    lock.unlock();
    task.call();
    lock.lock();
    busy_ = false;
    if (!tasks_.empty()) have_thread();
    lock.unlock();
    changed_.notify_all();
    task.tell();
    task = {};  // what it holds may call back when it goes
    lock.lock();
  }
}

}  // namespace rondo::torch_backend
