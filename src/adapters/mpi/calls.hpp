// What the functions of MPI that Rondo takes over have in common.
#pragma once

#include <mpi.h>

#include <cstddef>

#include <rondo/communicator.hpp>

#include "adapters/mpi/buffers.hpp"
#include "adapters/mpi/errors.hpp"
#include "adapters/mpi/group.hpp"
#include "adapters/mpi/summary.hpp"
#include "adapters/mpi/types.hpp"

namespace rondo::mpi_programs {

// Hands a call on that Rondo could not make.
template <class HandOn>
int noted(Function function, const HandOn& hand_on) {
  const NotedCall noted_call(function, false, 0);
  return hand_on();
}

// A rank that fails ends the calls of all ranks, which may wait for it, since nothing else would.
template <class ByRondo>
int by_rondo_or_error(MPI_Comm comm, Group& group, const ByRondo& by_rondo) {
  const Inside inside;
  return code_of([&] { by_rondo(group.communicator()); },
                 [&](const std::exception& error) {
                   group.communicator().abort(error.what());
                   return report(comm, error);
                 });
}

// Makes a call by Rondo if the group takes calls of `bytes`, else hands it on.
template <class HandOn, class ByRondo>
int make(Function function, MPI_Comm comm, Group& group, std::size_t bytes, const HandOn& hand_on,
         const ByRondo& by_rondo) {
  const bool taken = group.takes(bytes);
  const NotedCall noted_call(function, taken, bytes);
  if (!taken) return hand_on();
  return by_rondo_or_error(comm, group, by_rondo);
}

// Starts a call that goes on in the background, which Group::takes_in_background() has taken.
template <class ByRondo>
int start(Function function, MPI_Comm comm, Group& group, std::size_t bytes,
          const ByRondo& by_rondo) {
  const NotedCall noted_call(function, true, bytes);
  return by_rondo_or_error(comm, group, by_rondo);
}

}  // namespace rondo::mpi_programs
