#include "adapters/nccl/real_library.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>

#include <rondo/errors.hpp>

#include "adapters/nccl/device.hpp"
#include "adapters/nccl/functions.hpp"

namespace rondo::nccl_programs {
namespace {

constexpr const char* kVariable = "RONDO_NCCL_FALLBACK";

// With RTLD_DEEPBIND its functions find each other before ours.
void* open_library(const char* file) {
  void* const opened = ::dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (opened == nullptr) {
    const char* const reason = ::dlerror();
    throw UsageError(std::string(kVariable) +
                     " names no library: " + (reason != nullptr ? reason : file));
  }
  if (::dlsym(opened, "ncclGetUniqueId") == reinterpret_cast<void*>(&ncclGetUniqueId)) {
    throw UsageError(std::string(kVariable) +
                     " names Rondo's own library; give the path of NVIDIA's");
  }
  return opened;
}

// Null where the variable is not set.
void* opened_library() {
  static void* const library = [] {
    const char* const file = std::getenv(kVariable);
    return file == nullptr || *file == '\0' ? nullptr : open_library(file);
  }();
  return library;
}

// All ranks must have the library, or none.
bool all_have_it(ncclComm& comm) {
  int ranks = opened_library() != nullptr ? 1 : 0;
  comm.devices.host().all_reduce(ranks);
  if (ranks != 0 && ranks != comm.size) {
    throw UsageError(std::string(kVariable) + " is set on " + std::to_string(ranks) + " of " +
                     std::to_string(comm.size) + " ranks; set it on all or on none");
  }
  return ranks != 0;
}

class DeviceOfComm {
 public:
  explicit DeviceOfComm(const ncclComm& comm) : before_(current_device()) {
    use_device(comm.devices.device());
  }
  DeviceOfComm(const DeviceOfComm&) = delete;
  DeviceOfComm& operator=(const DeviceOfComm&) = delete;
  ~DeviceOfComm() {
    static_cast<void>(result_of([this] { use_device(before_); }));
  }

 private:
  int before_;
};

}  // namespace

bool has_real_library() noexcept {
  try {
    return opened_library() != nullptr;
  } catch (const std::exception&) {
    return false;
  }
}

void* real_function(const std::string& name) {
  void* const library = opened_library();
  if (library == nullptr) {
    throw UsageError("Rondo cannot make this call of " + name +
                     ": it lacks the function, the type or the operation. " + kVariable +
                     " may name an NCCL library that makes such calls in its place");
  }
  void* const function = ::dlsym(library, name.c_str());
  if (function == nullptr) {
    throw UsageError("neither Rondo nor the library that " + std::string(kVariable) +
                     " names has " + name);
  }
  return function;
}

void join_by_real_library(ncclComm& comm) {
  if (!all_have_it(comm)) return;
  using MakeId = ncclResult_t (*)(ncclUniqueId*);
  using Join = ncclResult_t (*)(ncclComm_t*, int, ncclUniqueId, int);
  auto* const make_id = reinterpret_cast<MakeId>(real_function("ncclGetUniqueId"));
  auto* const join = reinterpret_cast<Join>(real_function("ncclCommInitRank"));
  // The first byte says whether rank 0 has made the rest.
  std::array<char, 1 + sizeof(ncclUniqueId)> told{};
  ncclUniqueId id{};
  if (comm.rank == 0 && make_id(&id) == ncclSuccess) {
    told[0] = 1;
    std::memcpy(&told[1], &id, sizeof(id));
  }
  comm.devices.host().broadcast(std::span(reinterpret_cast<std::int8_t*>(told.data()), told.size()),
                                0);
  std::memcpy(&id, &told[1], sizeof(id));
  const DeviceOfComm device(comm);
  if (told[0] == 0 || join(&comm.real, comm.size, id, comm.rank) != ncclSuccess) {
    using Text = const char* (*)(ncclComm_t);
    throw UsageError(
        std::string("the ranks cannot be joined by the library that ") + kVariable +
        " names: " + reinterpret_cast<Text>(real_function("ncclGetLastError"))(nullptr));
  }
}

void abort_by_real_library(ncclComm& comm) {
  using Abort = ncclResult_t (*)(ncclComm_t);
  reinterpret_cast<Abort>(real_function("ncclCommAbort"))(std::exchange(comm.real, nullptr));
}

ncclResult_t async_error_of_real_library(ncclComm& comm) {
  using Ask = ncclResult_t (*)(ncclComm_t, ncclResult_t*);
  ncclResult_t error = ncclSuccess;
  const ncclResult_t asked =
      reinterpret_cast<Ask>(real_function("ncclCommGetAsyncError"))(comm.real, &error);
  return asked != ncclSuccess ? asked : error;
}

}  // namespace rondo::nccl_programs

ncclComm::~ncclComm() {
  if (real != nullptr) {
    using namespace rondo::nccl_programs;
    using Destroy = ncclResult_t (*)(ncclComm_t);
    static_cast<void>(
        result_of([this] { reinterpret_cast<Destroy>(real_function("ncclCommDestroy"))(real); }));
  }
}
