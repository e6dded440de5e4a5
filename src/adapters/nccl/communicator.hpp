// What an ncclComm_t points to.
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include <rondo/cuda.hpp>

#include "adapters/nccl/errors.hpp"
#include "adapters/nccl/interface.hpp"

namespace rondo::nccl_programs {
class Family;
}  // namespace rondo::nccl_programs

struct ncclComm {
  explicit ncclComm(rondo::cuda::Communicator its_devices)
      : devices(std::move(its_devices)), rank(devices.rank()), size(devices.size()) {}
  ncclComm(const ncclComm&) = delete;
  ncclComm& operator=(const ncclComm&) = delete;
  ~ncclComm();

  rondo::cuda::Communicator devices;
  const int rank;
  const int size;
  bool finalized = false;     // no call may follow
  ncclComm_t real = nullptr;  // that of the NCCL library which has what Rondo lacks, if any
  // Shared by threads that are in a call, which an abort on another thread waits for.
  std::shared_mutex in_use;
  std::shared_ptr<rondo::nccl_programs::Family> family;
};

namespace rondo::nccl_programs {

// Communicators that one thread has made together, and destroys one after the other. A rank that
// leaves may have to wait for the others, so all of them leave when the last is destroyed.
class Family {
 public:
  void add() {
    const std::lock_guard lock(mutex_);
    ++members_;
  }
  // Takes a communicator that the program has destroyed. Returns all of them with the last one.
  std::vector<std::unique_ptr<ncclComm>> take(std::unique_ptr<ncclComm> one);

 private:
  std::mutex mutex_;
  int members_ = 0;
  std::vector<std::unique_ptr<ncclComm>> destroyed_;
};

inline ncclComm& usable(ncclComm_t comm) {
  if (comm == nullptr) throw InvalidArgument("the communicator is null");
  if (comm->finalized) throw InvalidArgument("the communicator was finalized");
  return *comm;
}
template <class T>
T& not_null(T* pointer, const char* what) {
  if (pointer == nullptr) throw InvalidArgument(std::string(what) + " is null");
  return *pointer;
}

}  // namespace rondo::nccl_programs
