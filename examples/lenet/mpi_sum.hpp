// MPI's own all-reduce, for comparison. In a build with MPI (mpi_sum.cpp) or without
// (mpi_absent.cpp).
#pragma once

#include "summing.hpp"

namespace lenet {

// Over MPI_COMM_WORLD. Throws std::runtime_error in a build without MPI.
SumGradients sum_with_mpi();

}  // namespace lenet
