// MPI's error codes as exceptions.
#pragma once

namespace rondo::detail {

inline constexpr int kAnyPeer = -1;

// Throws TransportError with MPI's own words unless `code` is MPI_SUCCESS. `peer`: the rank that the
// operation was about.
void check_mpi(int code, const char* what, int peer = kAnyPeer);

}  // namespace rondo::detail
