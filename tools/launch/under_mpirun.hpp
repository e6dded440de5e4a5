// Ranks that are processes of mpirun, in a build with MPI (under_mpirun_mpi.cpp) or without
// (under_mpirun_absent.cpp).
#pragma once

#include "launch.hpp"

namespace rondo::launch {

extern const bool kHasMpi;

// Whether MPI can start in a process of Slurm's srun, which offers what MPI needs only with --mpi
// or by its administrator's choice. MPI_Init would end the process.
bool srun_serves_mpi();

// Runs `body` as this process's rank of MPI_COMM_WORLD; an exception ends all ranks.
int run_under_mpirun(const How& how, int* argc, char*** argv,
                     const std::function<int(Communicator)>& body);

}  // namespace rondo::launch
