#include "base/check_mpi.hpp"

#include <mpi.h>

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

}  // namespace rondo::detail
