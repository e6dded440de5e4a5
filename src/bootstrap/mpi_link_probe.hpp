#pragma once

#include <mpi.h>

#include "bootstrap/link_probe.hpp"

namespace rondo::detail {

// Over `comm`, on which nothing else is under way. Throws TransportError.
LinkFacts probe_links(MPI_Comm comm, int next, int prev);

}  // namespace rondo::detail
