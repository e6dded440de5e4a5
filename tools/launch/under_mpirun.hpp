// The third way, where MPI is part of the build (under_mpirun_mpi.cpp) or not (under_mpirun_absent.cpp).
#pragma once

#include "launch.hpp"

namespace rondo::launch {

extern const bool kHasMpi;

// This process is a rank of MPI_COMM_WORLD; an exception ends them all.
int run_under_mpirun(const How& how, int* argc, char*** argv,
                     const std::function<int(Communicator)>& body);

}  // namespace rondo::launch
