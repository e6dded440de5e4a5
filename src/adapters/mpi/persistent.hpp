// Persistent calls: MPI_Allreduce_init() makes them, and MPI_Start() starts them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <functional>

#include <rondo/communicator.hpp>

#include "adapters/mpi/functions.hpp"
#include "adapters/mpi/summary.hpp"

namespace rondo::mpi_programs {

class Group;

struct PersistentCall {
  Group* group = nullptr;  // null after MPI has freed its communicator
  Function function = Function::all_reduce_init;
  std::size_t bytes = 0;
  // Starts the call, and with it the request, which Completions has made.
  std::function<void(Communicator&, MPI_Request*)> start;
};

// From now on, starts of this request are starts of the call.
void remember(MPI_Request request, PersistentCall call);

// MPI_Start() and MPI_Request_free() of any request; `hand_on` where it is none of these calls.
int start_request(MPI_Request* request, HandOn hand_on);
int free_request(const MPI_Request* request, HandOn hand_on);

// MPI frees the communicator of `group`: later starts of its calls are errors.
void forget_calls_of(const Group& group);

}  // namespace rondo::mpi_programs
