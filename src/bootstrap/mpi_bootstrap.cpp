#include "bootstrap/mpi_bootstrap.hpp"

#include <string>

#include <fmt/format.h>

#include <rondo/errors.hpp>

namespace rondo::detail {

void check_mpi(int code, const char* what, int peer) {
  if (code == MPI_SUCCESS) return;
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  text.resize(static_cast<std::size_t>(length));
  const std::string towards = peer == kAnyPeer ? "" : fmt::format(" (rank {})", peer);
  throw TransportError(fmt::format(
      "{}{} failed: {}. The network or another process is probably gone: look at the other ranks' "
      "output",
      what, towards, text));
}

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
