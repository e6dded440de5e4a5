// Ranks that are processes of mpirun, in a build with MPI (under_mpirun_mpi.cpp) or without (under_mpirun_absent.cpp).
#pragma once

#include "launch.hpp"

namespace rondo::launch {

extern const bool kHasMpi;

// Runs `body` as this process's rank of MPI_COMM_WORLD; an exception ends all ranks.
int run_under_mpirun(const How& how, int* argc, char*** argv,
                     const std::function<int(Communicator)>& body);

}  // namespace rondo::launch
