// The NCCL library that the variable RONDO_NCCL_FALLBACK names, which makes what Rondo lacks. Each
// communicator of Rondo then has one of that library beside it.
#pragma once

#include <string>

#include "adapters/nccl/communicator.hpp"
#include "adapters/nccl/errors.hpp"
#include "adapters/nccl/interface.hpp"

namespace rondo::nccl_programs {

// Not where the variable names none that can be loaded; making a communicator says why.
bool has_real_library() noexcept;
// Throws UsageError where there is no such library, or it has no such function.
void* real_function(const std::string& name);

// Collective over the ranks of `comm`, each on its own thread.
void join_by_real_library(ncclComm& comm);

// For a communicator that has one of that library.
void abort_by_real_library(ncclComm& comm);
ncclResult_t async_error_of_real_library(ncclComm& comm);

// What the real library knows in place of an argument.
template <class T>
T for_real_library(T argument) {
  return argument;
}
inline ncclComm_t for_real_library(ncclComm_t comm) { return usable(comm).real; }

// Calls the real library's function of that name.
template <class... Arguments>
ncclResult_t by_real_library(const char* name, Arguments... arguments) noexcept {
  ncclResult_t result = ncclSuccess;
  const ncclResult_t found = result_of([&] {
    auto* const function = reinterpret_cast<ncclResult_t (*)(Arguments...)>(real_function(name));
    result = function(for_real_library(arguments)...);
    if (result != ncclSuccess && result != ncclInProgress) {
      auto* const text =
          reinterpret_cast<const char* (*)(ncclComm_t)>(real_function("ncclGetLastError"));
      remember(result, std::string(name) + " of RONDO_NCCL_FALLBACK: " + text(nullptr));
    }
  });
  return found == ncclSuccess ? result : found;
}

}  // namespace rondo::nccl_programs
