#include "adapters/nccl/errors.hpp"

#include <mutex>

#include <rondo/errors.hpp>

#include "adapters/nccl/functions.hpp"

namespace rondo::nccl_programs {
namespace {

struct LastError {
  std::mutex mutex;
  std::string text;
};
LastError& last() {
  static LastError error;
  return error;
}

}  // namespace

ncclResult_t remember(ncclResult_t result, const std::string& text) noexcept {
  try {
    const std::lock_guard lock(last().mutex);
    last().text = text;
  } catch (const std::exception&) {
    // Without memory for the text, the result has to do.
  }
  return result;
}

ncclResult_t remember_exception() noexcept {
  try {
    throw;
  } catch (const InvalidArgument& error) {
    return remember(ncclInvalidArgument, error.what());
  } catch (const UsageError& error) {
    return remember(ncclInvalidUsage, error.what());
  } catch (const MismatchError& error) {
    return remember(ncclInvalidUsage, error.what());
  } catch (const CudaError& error) {
    return remember(ncclUnhandledCudaError, error.what());
  } catch (const PeerError& error) {
    return remember(ncclRemoteError, error.what());
  } catch (const TimeoutError& error) {
    return remember(ncclRemoteError, error.what());
  } catch (const std::exception& error) {
    return remember(ncclSystemError, error.what());
  } catch (...) {
    return remember(ncclInternalError, "an unknown exception");
  }
}

ncclResult_t lacks(const char* function) noexcept {
  try {
    return remember(ncclInvalidUsage, std::string("Rondo has no ") + function);
  } catch (const std::exception&) {
    return ncclInvalidUsage;
  }
}

const char* last_error() noexcept {
  try {
    static thread_local std::string text;
    const std::lock_guard lock(last().mutex);
    text = last().text;
    return text.c_str();
  } catch (const std::exception&) {
    return "there is too little memory for the text of the last error";
  }
}

}  // namespace rondo::nccl_programs

extern "C" {

const char* ncclGetLastError(ncclComm_t /*comm*/) { return rondo::nccl_programs::last_error(); }

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "CUDA refused something (ncclGetLastError says what)";
    case ncclSystemError:
      return "the system or the network refused something (ncclGetLastError says what)";
    case ncclInternalError:
      return "an error inside of Rondo (ncclGetLastError has more)";
    case ncclInvalidArgument:
      return "an argument cannot be right (ncclGetLastError says which)";
    case ncclInvalidUsage:
      return "a call that cannot be made like that (ncclGetLastError says why)";
    case ncclRemoteError:
      return "another rank failed or ended (ncclGetLastError says which)";
    case ncclInProgress:
      return "the call is in progress";
  }
  return "a result that NCCL 2.21 does not have";
}
}
