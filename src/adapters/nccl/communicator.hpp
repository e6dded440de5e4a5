// What an ncclComm_t points to.
#pragma once

#include <string>
#include <utility>

#include <rondo/cuda.hpp>

#include "adapters/nccl/errors.hpp"
#include "adapters/nccl/interface.hpp"

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
};

namespace rondo::nccl_programs {

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
