#include <rondo/mpi.h>

#include <rondo/mpi.hpp>

#include "adapters/c/handles.hpp"

namespace c = rondo::c_interface;

rondo_status rondo_from_mpi(MPI_Comm mpi, const rondo_options* options,
                            rondo_comm** comm) noexcept {
  return c::make_comm(comm, [&] { return rondo::from_mpi(mpi, c::options_of(options)); });
}
