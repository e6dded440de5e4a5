// Completes the requests of calls that go on in the background.
#pragma once

#include <mpi.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include <rondo/work.hpp>

namespace rondo::mpi_programs {

// Has a thread of its own, which waits for the calls of one communicator in their order, and tells
// MPI that their requests are complete. Needs MPI_THREAD_MULTIPLE.
class Completions {
 public:
  Completions();
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;
  // After all that was added is complete.
  ~Completions();

  // `done`: is called with the code of the call when it is done, before its request is complete.
  void add(Work work, MPI_Request request, std::function<void(int)> done);

 private:
  struct Pending {
    Work work;
    MPI_Request request;
    std::function<void(int)> done;
  };
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Pending> pending_;
  bool stopping_ = false;
  std::thread thread_;  // last, since it uses the others
};

}  // namespace rondo::mpi_programs
