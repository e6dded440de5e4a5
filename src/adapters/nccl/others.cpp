// Memory; and the functions that Rondo lacks, which the real library makes if there is one.
#include <cstddef>

#include "adapters/nccl/device.hpp"
#include "adapters/nccl/errors.hpp"
#include "adapters/nccl/functions.hpp"
#include "adapters/nccl/interface.hpp"
#include "adapters/nccl/real_library.hpp"

namespace nccl = rondo::nccl_programs;

extern "C" {

ncclResult_t ncclMemAlloc(void** memory, std::size_t bytes) {
  return nccl::result_of(
      [&] { nccl::not_null(memory, "the place for the address") = nccl::allocate(bytes); });
}

ncclResult_t ncclMemFree(void* memory) {
  return nccl::result_of([memory] { nccl::release(memory); });
}

// In NCCL a rank may register memory alone. Rondo's registration needs all ranks, so this does
// nothing; in NCCL, too, it is only an optimization.
ncclResult_t ncclCommRegister(ncclComm_t comm, void* memory, std::size_t /*bytes*/, void** handle) {
  return nccl::result_of([&] {
    nccl::usable(comm);
    nccl::not_null(handle, "the place for the handle") = memory;
  });
}
ncclResult_t ncclCommDeregister(ncclComm_t comm, void* /*handle*/) {
  return nccl::result_of([&] { nccl::usable(comm); });
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                                      int residence, ncclComm_t comm) {
  return nccl::by_real_library("ncclRedOpCreatePreMulSum", op, scalar, type, residence, comm);
}
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  return nccl::by_real_library("ncclRedOpDestroy", op, comm);
}
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* memory, std::size_t bytes,
                                    ncclWindow_t* window, int flags) {
  return nccl::by_real_library("ncclCommWindowRegister", comm, memory, bytes, window, flags);
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  return nccl::by_real_library("ncclCommWindowDeregister", comm, window);
}
ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void** memory) {
  return nccl::by_real_library("ncclWinGetUserPtr", comm, window, memory);
}
ncclResult_t ncclDevCommCreate(ncclComm_t comm, void* requirements, void* made) {
  return nccl::by_real_library("ncclDevCommCreate", comm, requirements, made);
}
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, void* made) {
  return nccl::by_real_library("ncclDevCommDestroy", comm, made);
}
ncclResult_t ncclGetLsaMultimemDevicePointer(ncclWindow_t window, std::size_t offset,
                                             void** memory) {
  return nccl::by_real_library("ncclGetLsaMultimemDevicePointer", window, offset, memory);
}
ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t window, std::size_t offset, int peer,
                                      void** memory) {
  return nccl::by_real_library("ncclGetPeerDevicePointer", window, offset, peer, memory);
}
ncclResult_t ncclPutSignal(const void* in, std::size_t count, ncclDataType_t type, int peer,
                           ncclWindow_t window, std::size_t offset, int signal, int context,
                           unsigned flags, ncclComm_t comm, cudaStream_t stream) {
  return nccl::by_real_library("ncclPutSignal", in, count, type, peer, window, offset, signal,
                               context, flags, comm, stream);
}
ncclResult_t ncclSignal(int peer, int signal, int context, unsigned flags, ncclComm_t comm,
                        cudaStream_t stream) {
  return nccl::by_real_library("ncclSignal", peer, signal, context, flags, comm, stream);
}
ncclResult_t ncclWaitSignal(int count, void* signals, ncclComm_t comm, cudaStream_t stream) {
  return nccl::by_real_library("ncclWaitSignal", count, signals, comm, stream);
}

// Rondo lacks these, and the other library cannot make them for one of Rondo's communicators.
ncclResult_t ncclCommShrink() { return nccl::lacks("ncclCommShrink"); }
ncclResult_t ncclCommGrow() { return nccl::lacks("ncclCommGrow"); }
ncclResult_t ncclCommGetUniqueId() { return nccl::lacks("ncclCommGetUniqueId"); }
ncclResult_t ncclCommSuspend() { return nccl::lacks("ncclCommSuspend"); }
ncclResult_t ncclCommResume() { return nccl::lacks("ncclCommResume"); }
ncclResult_t ncclCommMemStats() { return nccl::lacks("ncclCommMemStats"); }
ncclResult_t ncclGroupSimulateEnd() { return nccl::lacks("ncclGroupSimulateEnd"); }
}
