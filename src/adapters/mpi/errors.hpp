// Errors of Rondo as MPI programs get them.
#pragma once

#include <mpi.h>

#include <exception>

namespace rondo::mpi_programs {

// Calls the error handler of `comm`, whose default ends the program, with a code whose text is that
// of the exception. Returns the code.
int report(MPI_Comm comm, const std::exception& error) noexcept;

// MPI_SUCCESS, or what report() returns for the exception that `body` throws.
template <class Body>
int code_of(MPI_Comm comm, const Body& body) noexcept {
  try {
    body();
    return MPI_SUCCESS;
  } catch (const std::exception& error) {
    return report(comm, error);
  }
}

}  // namespace rondo::mpi_programs
