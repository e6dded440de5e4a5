// Requests of calls that go on in the background.
#pragma once

#include <mpi.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include <rondo/call.hpp>
#include <rondo/communicator.hpp>
#include <rondo/work.hpp>

namespace rondo::mpi_programs {

// Has a thread of its own, which waits for the calls of one communicator in their order, and
// completes their requests. Needs MPI_THREAD_MULTIPLE.
//
// A request is the receive of an empty message, which that thread sends to its own rank when the
// call has ended. (MPICH 5.0.2 stops a program that passes an unfinished generalised request to
// MPI_Waitall.)
class Completions {
 public:
  // Errors go to the error handler of `comm`, that of the program. `messages`: has the same ranks,
  // and no other messages. (A communicator of this rank alone would do, if messages in it did not
  // get lost between two threads in MPICH 4.0.2.)
  Completions(MPI_Comm comm, MPI_Comm messages);
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;
  // After all that was started is complete.
  ~Completions();

  // Starts `call`, and makes a request that is complete when the call has ended. If it fails, the
  // request is complete with MPI_ERR_TRUNCATE. Throws if nothing was started; then *request is
  // MPI_REQUEST_NULL.
  void start(Communicator& by, const Call& call, MPI_Request* request);

 private:
  void serve();

  MPI_Comm comm_;
  MPI_Comm messages_;
  int rank_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Of receives, the first that was posted gets the first message: so they are posted and added
  // here in one order.
  std::deque<Work> pending_;
  bool stopping_ = false;
  std::thread thread_;  // last, since it uses the others
};

}  // namespace rondo::mpi_programs
