// Stands for NVIDIA's library in tests of RONDO_NCCL_FALLBACK: it knows how ranks were joined, and
// its sums are marks, by which one sees that it has made them.
#include <cstddef>
#include <cstring>

#include "adapters/nccl/interface.hpp"

struct ncclComm {
  int rank;
  int size;
};

namespace {
int open_groups = 0;
}

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 7, sizeof(*id));
  return ncclSuccess;
}
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  for (const char byte : id.internal) {
    if (byte != 7) return ncclInvalidArgument;
  }
  *comm = new ncclComm{rank, size};
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() {
  ++open_groups;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  --open_groups;
  return ncclSuccess;
}
const char* ncclGetLastError(ncclComm_t /*comm*/) { return "the other library's text"; }
ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* /*scalar*/, ncclDataType_t /*type*/,
                                      int /*residence*/, ncclComm_t comm) {
  *op = static_cast<ncclRedOp_t>(100 + comm->rank);
  return ncclSuccess;
}
ncclResult_t ncclAllReduce(const void* /*in*/, void* out, std::size_t count,
                           ncclDataType_t /*type*/, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t /*stream*/) {
  if (count == 0) return ncclInvalidUsage;
  auto* const marks = static_cast<float*>(out);
  marks[0] = static_cast<float>(op);
  marks[1] = static_cast<float>(comm->size);
  marks[2] = static_cast<float>(open_groups);
  return ncclSuccess;
}
}
