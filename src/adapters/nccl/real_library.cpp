#include "adapters/nccl/real_library.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <span>

#include <rondo/errors.hpp>

#include "adapters/nccl/device.hpp"

namespace rondo::nccl_programs {
namespace {

constexpr const char* kVariable = "RONDO_NCCL_FALLBACK";

// In a space of names of its own, where its functions find each other and not ours.
void* opened_library() {
  static void* const library = [] {
    const char* const file = std::getenv(kVariable);
    if (file == nullptr || *file == '\0') return static_cast<void*>(nullptr);
    void* const opened = ::dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (opened == nullptr) {
      const char* const reason = ::dlerror();
      throw UsageError(std::string(kVariable) +
                       " names no library: " + (reason != nullptr ? reason : file));
    }
    return opened;
  }();
  return library;
}

}  // namespace

bool has_real_library() { return opened_library() != nullptr; }

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
  if (!has_real_library()) return;
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
  use_device(comm.devices.device());
  if (told[0] == 0 || join(&comm.real, comm.size, id, comm.rank) != ncclSuccess) {
    throw UsageError(std::string("the ranks cannot be joined by the library that ") + kVariable +
                     " names");
  }
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
