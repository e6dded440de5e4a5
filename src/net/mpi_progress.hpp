// Lets MPI go on with what the program itself has begun (a large MPI_Isend, a one-sided access of
// another rank), while the program's thread waits in a call of Rondo's and so makes no MPI call.
#pragma once

#include <functional>

namespace rondo::detail {

// What a long wait calls again and again. It makes one MPI call if the calling thread may: with
// MPI_THREAD_MULTIPLE, or on MPI's main thread with less than MPI_THREAD_SERIALIZED. Null with
// MPI_THREAD_SERIALIZED, where another thread of the program may be in MPI. Throws TransportError;
// what it returns never throws.
std::function<void()> drive_mpi();

}  // namespace rondo::detail
