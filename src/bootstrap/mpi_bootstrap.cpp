#include "bootstrap/mpi_bootstrap.hpp"

#include "base/check_mpi.hpp"

namespace rondo::detail {

MpiBootstrap::MpiBootstrap(MPI_Comm comm) : comm_(comm) {
  check_mpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
}

void MpiBootstrap::all_gather(const void* mine, void* all, std::size_t bytes) {
  // The blobs of a bootstrap are small structs: they fit an int.
  const int count = static_cast<int>(bytes);
  check_mpi(MPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, comm_), "MPI_Allgather");
}

}  // namespace rondo::detail
