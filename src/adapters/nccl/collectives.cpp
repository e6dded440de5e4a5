// Collectives and messages.
#include <cstddef>
#include <string>

#include <rondo/call.hpp>
#include <rondo/cuda.hpp>
#include <rondo/types.hpp>

#include "adapters/nccl/communicator.hpp"
#include "adapters/nccl/errors.hpp"
#include "adapters/nccl/functions.hpp"
#include "adapters/nccl/group.hpp"
#include "adapters/nccl/interface.hpp"
#include "adapters/nccl/real_library.hpp"

namespace rondo::nccl_programs {
namespace {

bool is_narrow(ncclDataType_t type) { return type == ncclFloat8e4m3 || type == ncclFloat8e5m2; }

// Floats of 8 bits count as bytes: Rondo only moves them.
DataType data_type_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return DataType::i8;
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2:
      return DataType::u8;
    case ncclInt32:
      return DataType::i32;
    case ncclUint32:
      return DataType::u32;
    case ncclInt64:
      return DataType::i64;
    case ncclUint64:
      return DataType::u64;
    case ncclFloat16:
      return DataType::f16;
    case ncclFloat32:
      return DataType::f32;
    case ncclFloat64:
      return DataType::f64;
    case ncclBfloat16:
      return DataType::bf16;
  }
  throw InvalidArgument("there is no ncclDataType_t " + std::to_string(static_cast<int>(type)));
}

ReduceOp reduce_op_of(ncclRedOp_t op) {
  switch (op) {
    case ncclSum:
      return ReduceOp::sum;
    case ncclProd:
      return ReduceOp::prod;
    case ncclMax:
      return ReduceOp::max;
    case ncclMin:
      return ReduceOp::min;
    case ncclAvg:
      return ReduceOp::avg;
  }
  throw InvalidArgument("there is no ncclRedOp_t " + std::to_string(static_cast<int>(op)));
}

// Whether Rondo has the reduction; else the real library may. A value that NCCL does not have is
// refused later.
bool rondo_reduces(ncclDataType_t type, ncclRedOp_t op) {
  if (is_narrow(type) || op > ncclAvg) return false;
  return type < ncclInt8 || type > ncclFloat8e5m2 || op < ncclSum ||
         supports(data_type_of(type), reduce_op_of(op));
}

ncclResult_t make_collective(ncclComm_t comm, Collective collective, const void* in, void* out,
                             std::size_t count, ncclDataType_t type, cudaStream_t stream,
                             ncclRedOp_t op = ncclSum, int root = 0) {
  const ncclResult_t result = result_of([&] {
    const bool of_chunks = collective != Collective::all_reduce &&
                           collective != Collective::reduce && collective != Collective::broadcast;
    Call call;
    call.collective = collective;
    call.in = in;
    call.out = out;
    call.type = data_type_of(type);
    call.op = reduce_op_of(op);
    call.root = root;
    ncclComm& its = usable(comm);
    call.count = of_chunks ? count * static_cast<std::size_t>(its.size) : count;
    if (call.count > 0) enqueue(its, call, stream);
  });
  return refused_in_group(result);
}

ncclResult_t send_or_receive(ncclComm_t comm, bool sends, void* data, std::size_t count,
                             ncclDataType_t type, int peer, cudaStream_t stream) {
  const ncclResult_t result = result_of([&] {
    ncclComm& its = usable(comm);
    if (peer < 0 || peer >= its.size) {
      throw InvalidArgument("there is no rank " + std::to_string(peer) + " among " +
                            std::to_string(its.size) + " ranks");
    }
    const std::size_t bytes = count * size_of(data_type_of(type));
    if (bytes > 0) enqueue(its, Message{sends, peer, data, bytes, stream});
  });
  return refused_in_group(result);
}

}  // namespace
}  // namespace rondo::nccl_programs

namespace nccl = rondo::nccl_programs;
using rondo::Collective;

extern "C" {

ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  if (!nccl::rondo_reduces(type, op)) {
    return nccl::refused_in_group(
        nccl::by_real_library("ncclAllReduce", in, out, count, type, op, comm, stream));
  }
  return nccl::make_collective(comm, Collective::all_reduce, in, out, count, type, stream, op);
}

ncclResult_t ncclReduce(const void* in, void* out, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  if (!nccl::rondo_reduces(type, op)) {
    return nccl::refused_in_group(
        nccl::by_real_library("ncclReduce", in, out, count, type, op, root, comm, stream));
  }
  return nccl::make_collective(comm, Collective::reduce, in, out, count, type, stream, op, root);
}

ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  if (!nccl::rondo_reduces(type, op)) {
    return nccl::refused_in_group(
        nccl::by_real_library("ncclReduceScatter", in, out, count, type, op, comm, stream));
  }
  return nccl::make_collective(comm, Collective::reduce_scatter, in, out, count, type, stream, op);
}

ncclResult_t ncclAllGather(const void* in, void* out, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return nccl::make_collective(comm, Collective::all_gather, in, out, count, type, stream);
}

ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return nccl::make_collective(comm, Collective::broadcast, in, out, count, type, stream, ncclSum,
                               root);
}

ncclResult_t ncclBcast(void* buffer, std::size_t count, ncclDataType_t type, int root,
                       ncclComm_t comm, cudaStream_t stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

ncclResult_t ncclGather(const void* in, void* out, std::size_t count, ncclDataType_t type, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return nccl::make_collective(comm, Collective::gather, in, out, count, type, stream, ncclSum,
                               root);
}

ncclResult_t ncclScatter(const void* in, void* out, std::size_t count, ncclDataType_t type,
                         int root, ncclComm_t comm, cudaStream_t stream) {
  return nccl::make_collective(comm, Collective::scatter, in, out, count, type, stream, ncclSum,
                               root);
}

ncclResult_t ncclAlltoAll(const void* in, void* out, std::size_t count, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream) {
  return nccl::make_collective(comm, Collective::all_to_all, in, out, count, type, stream);
}

ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return nccl::send_or_receive(comm, true, const_cast<void*>(data), count, type, peer, stream);
}

ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return nccl::send_or_receive(comm, false, data, count, type, peer, stream);
}
}
