// Whatever fails on one rank while links are made becomes an error of all, so that nobody waits for
// a rank that has given up.
#pragma once

#include <exception>
#include <string>

#include "bootstrap/bootstrap.hpp"

namespace rondo::detail {

// Throws on every rank if one of them comes with an error: the lowest such rank's, as a UsageError,
// CudaError or TransportError that names the rank. Collective.
void agree(Bootstrap& bootstrap, const std::exception_ptr& error);

// Calls `what` on every rank, then agree() with the error that `what` threw, if any. Collective.
template <class Function>
void together(Bootstrap& bootstrap, Function&& what) {
  std::exception_ptr error;
  try {
    what();
  } catch (...) {
    error = std::current_exception();
  }
  agree(bootstrap, error);
}

}  // namespace rondo::detail
