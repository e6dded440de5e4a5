#include "adapters/mpi/completions.hpp"

#include <utility>

#include "adapters/mpi/errors.hpp"

namespace rondo::mpi_programs {

Completions::Completions() : thread_([this] { serve(); }) {}

Completions::~Completions() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Completions::add(Work work, MPI_Request request, std::function<void(int)> done) {
  {
    const std::lock_guard lock(mutex_);
    pending_.push_back({std::move(work), request, std::move(done)});
  }
  changed_.notify_all();
}

void Completions::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !pending_.empty(); });
    if (pending_.empty()) return;
    const Pending next = std::move(pending_.front());
    pending_.pop_front();
    lock.unlock();
    next.done(code_of([&] { next.work.wait(); }, code_for));
    PMPI_Grequest_complete(next.request);
    lock.lock();
  }
}

}  // namespace rondo::mpi_programs
