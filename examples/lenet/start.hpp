// How the trainer's ranks come to be. With MPI in the build (start_mpi.cpp) or without (start_local.cpp).
#pragma once

#include <functional>
#include <rondo/communicator.hpp>

#include "learner.hpp"

namespace lenet {

struct Start {
  int ranks = 0;      // threads
  int processes = 0;  // forked; neither: those of mpirun
};

// Runs `body` on every rank, each with `threads` compute threads; returns the program's exit code, and
// says on standard error why it is not 0.
int start(const Start& how, int threads, int* argc, char*** argv,
          const std::function<void(rondo::Communicator)>& body);

// MPI's own all-reduce over MPI_COMM_WORLD, for comparison.
SumGradients sum_with_mpi();

}  // namespace lenet
