// Starts the ranks of a program: threads of this process, processes that it forks, or those of a
// launcher.
#pragma once

#include <functional>
#include <rondo/communicator.hpp>

namespace rondo::launch {

struct How {
  const char* program = "";  // printed before a failing rank's message
  int ranks = 0;             // threads
  // Forked. If both are 0: those of rondo-launch or torchrun; of mpirun, or of srun where it serves
  // MPI, by MPI if this was built with MPI; of srun else; or this process alone.
  int processes = 0;
  // Whether Rondo's own threads may have to call MPI: for devices of several hosts.
  bool threads_use_mpi = false;
  CommunicatorOptions options;
};

// Whether launch() initialises MPI, given How::ranks and How::processes.
bool starts_mpi(int ranks, int processes);

// Runs `body` on every rank; `body` returns the rank's exit code. Returns the program's exit code:
// the largest of this process's ranks, or 2 after an exception, whose message is printed on
// standard error. Must be called before this process makes a thread or uses a device.
int launch(const How& how, int* argc, char*** argv, const std::function<int(Communicator)>& body);

// Writes "program: text" and the end of the line to standard error at once, so that it is not mixed
// with what other ranks write there.
void report(const char* program, const char* text);

}  // namespace rondo::launch
