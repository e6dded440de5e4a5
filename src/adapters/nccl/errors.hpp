// Exceptions of Rondo as results of NCCL's functions.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

#include "adapters/nccl/interface.hpp"

namespace rondo::nccl_programs {

// An argument that cannot be right.
struct InvalidArgument : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// Keeps the text for ncclGetLastError() of any thread, and returns `result`.
ncclResult_t remember(ncclResult_t result, const std::string& text) noexcept;
// The same for the exception that is being handled.
ncclResult_t remember_exception() noexcept;

// The answer of a function that Rondo has only by name.
ncclResult_t lacks(const char* function) noexcept;

// The text that was kept last; it stays where it is until this thread asks again.
const char* last_error() noexcept;

// No exception may pass through a program that calls C functions.
template <class Act>
ncclResult_t result_of(const Act& act) noexcept {
  try {
    act();
    return ncclSuccess;
  } catch (...) {
    return remember_exception();
  }
}

}  // namespace rondo::nccl_programs
