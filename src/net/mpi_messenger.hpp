// Messages by MPI.
#pragma once

#include <mpi.h>

#include <memory>

#include "net/messenger.hpp"

namespace rondo::detail {

// Owns `comm`, which nothing else uses. Its errors are returned, not fatal. Throws TransportError.
std::unique_ptr<Messenger> message_by_mpi(MPI_Comm comm);

}  // namespace rondo::detail
