// Starts the ranks of a program: threads of this process, processes that it forks, or those of mpirun.
#pragma once

#include <functional>
#include <rondo/communicator.hpp>

namespace rondo::launch {

struct How {
  const char* program = "";  // named before what a failing rank says
  int ranks = 0;             // threads
  int processes = 0;         // forked; neither: those of mpirun, or one, in a build without MPI
  // Whether threads of Rondo's may have to use MPI: for devices of several hosts.
  bool threads_use_mpi = false;
  CommunicatorOptions options;
};

// Runs `body` on every rank; it returns the exit code that the rank wants. Returns the program's: the
// largest of this process's ranks, or 2 after an exception, of which it has told on standard error. Only
// before this process has made a thread or used a device.
int launch(const How& how, int* argc, char*** argv, const std::function<int(Communicator)>& body);

}  // namespace rondo::launch
