// Errors of Rondo as MPI programs get them.
#pragma once

#include <mpi.h>

#include <exception>
#include <stdexcept>

namespace rondo::mpi_programs {

// A code of MPI whose text is that of the exception.
int code_for(const std::exception& error) noexcept;

// The same; also calls the error handler of `comm`, whose default prints the text, as much as MPI
// keeps of it, and ends the program.
int report(MPI_Comm comm, const std::exception& error) noexcept;

// MPI_SUCCESS, or what `handle` returns for the exception that `body` throws.
template <class Body, class Handle>
int code_of(const Body& body, const Handle& handle) noexcept {
  try {
    body();
    return MPI_SUCCESS;
  } catch (const std::exception& error) {
    return handle(error);
  } catch (...) {
    return handle(std::runtime_error("what was thrown is no std::exception"));
  }
}

// What `body` returns, or what report() returns for what it throws.
template <class Body>
int guarded(MPI_Comm comm, const Body& body) noexcept {
  int result = MPI_SUCCESS;
  const int code = code_of([&] { result = body(); },
                           [comm](const std::exception& error) { return report(comm, error); });
  return code == MPI_SUCCESS ? result : code;
}

}  // namespace rondo::mpi_programs
