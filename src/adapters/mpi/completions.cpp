#include "adapters/mpi/completions.hpp"

#include <utility>

#include <rondo/errors.hpp>

#include "adapters/mpi/errors.hpp"

namespace rondo::mpi_programs {
namespace {

char nothing = 0;

void require(int code) {
  if (code != MPI_SUCCESS) throw TransportError("MPI makes no request for a call");
}

}  // namespace

Completions::Completions(MPI_Comm comm, MPI_Comm messages) : comm_(comm), messages_(messages) {
  require(PMPI_Comm_rank(messages_, &rank_));
  thread_ = std::thread([this] { serve(); });
}

Completions::~Completions() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Completions::start(Communicator& by, const Call& call, MPI_Request* request) {
  const std::lock_guard lock(mutex_);
  require(PMPI_Irecv(&nothing, 0, MPI_BYTE, rank_, 0, messages_, request));
  try {
    pending_.push_back(by.run_async(call));
    changed_.notify_all();
  } catch (...) {
    PMPI_Cancel(request);
    PMPI_Wait(request, MPI_STATUS_IGNORE);
    throw;
  }
}

void Completions::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !pending_.empty(); });
    if (pending_.empty()) return;
    Work next = std::move(pending_.front());
    pending_.pop_front();
    lock.unlock();
    const int code = code_of([&] { next.wait(); },
                             [this](const std::exception& error) { return report(comm_, error); });
    // A message that is longer than the receive completes it with an error.
    PMPI_Send(&nothing, code == MPI_SUCCESS ? 0 : 1, MPI_BYTE, rank_, 0, messages_);
    lock.lock();
  }
}

}  // namespace rondo::mpi_programs
