#include <stdexcept>

#include "mpi_sum.hpp"

namespace lenet {

SumGradients sum_with_mpi() { throw std::runtime_error("this program was built without MPI"); }

}  // namespace lenet
