#include <rondo/errors.hpp>

#include "net/ucx_messenger.hpp"

namespace rondo::detail {

bool has_ucx() { return false; }

std::unique_ptr<UcxNetwork> open_ucx(const std::string& /*interface*/) {
  throw TransportError(
      "this Rondo was built without UCX, which carries messages between hosts without MPI; install "
      "libucx-dev and build again, or start the ranks by mpirun and use from_mpi");
}

}  // namespace rondo::detail
