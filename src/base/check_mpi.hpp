// Turns MPI's error codes into exceptions.
#pragma once

#include "base/rank_pair.hpp"

namespace rondo::detail {

// Throws TransportError with MPI's error text unless `code` is MPI_SUCCESS. `what`: the function or
// the work that the error names. `peer`: the rank at the other end; kAnyPeer if there is no single
// one.
void check_mpi(int code, const char* what, int peer = kAnyPeer);

}  // namespace rondo::detail
