#include <mpi.h>

#include <array>
#include <cstring>
#include <limits>
#include <rondo/chunk.hpp>
#include <vector>

#include "bench/perf/peers.hpp"

namespace rondo::perf {
namespace {

MPI_Datatype mpi_type(DataType type) {
  switch (type) {
    case DataType::f32:
      return MPI_FLOAT;
    case DataType::f64:
      return MPI_DOUBLE;
    case DataType::i8:
      return MPI_INT8_T;
    case DataType::u8:
      return MPI_UINT8_T;
    case DataType::i32:
      return MPI_INT32_T;
    case DataType::u32:
      return MPI_UINT32_T;
    case DataType::i64:
      return MPI_INT64_T;
    case DataType::u64:
      return MPI_UINT64_T;
    case DataType::i16:
      return MPI_INT16_T;
    case DataType::u16:
      return MPI_UINT16_T;
    case DataType::c64:
      return MPI_C_FLOAT_COMPLEX;
    case DataType::c128:
      return MPI_C_DOUBLE_COMPLEX;
    case DataType::boolean:
      return MPI_C_BOOL;
    case DataType::f16:
    case DataType::bf16:
      break;
  }
  return MPI_DATATYPE_NULL;
}

MPI_Op mpi_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return MPI_SUM;
    case ReduceOp::prod:
      return MPI_PROD;
    case ReduceOp::min:
      return MPI_MIN;
    case ReduceOp::max:
      return MPI_MAX;
    case ReduceOp::bit_and:
      return MPI_BAND;
    case ReduceOp::bit_or:
      return MPI_BOR;
    case ReduceOp::bit_xor:
      return MPI_BXOR;
    case ReduceOp::logical_and:
      return MPI_LAND;
    case ReduceOp::logical_or:
      return MPI_LOR;
    case ReduceOp::logical_xor:
      return MPI_LXOR;
    case ReduceOp::avg:
      break;
  }
  return MPI_OP_NULL;
}

// Counts and offsets of the ranks' chunks.
struct Parts {
  std::vector<int> counts;
  std::vector<int> offsets;

  Parts(std::uint64_t count, int size) {
    for (int rank = 0; rank < size; ++rank) {
      const Range range =
          chunk_range(count, static_cast<std::uint64_t>(size), static_cast<std::uint64_t>(rank));
      counts.push_back(static_cast<int>(range.count));
      offsets.push_back(static_cast<int>(range.offset));
    }
  }
};

std::ptrdiff_t own_offset_bytes(const Call& call, const Parts& parts, int rank) {
  return static_cast<std::ptrdiff_t>(parts.offsets[static_cast<std::size_t>(rank)]) *
         static_cast<std::ptrdiff_t>(size_of(call.type));
}

// Whether the root of a scatter has its chunk where its result goes.
bool own_out_in_place(const Call& call, const Parts& parts, int rank) {
  return rank == 0 && static_cast<const char*>(call.in) + own_offset_bytes(call, parts, rank) ==
                          static_cast<const char*>(call.out);
}

// all_gather, and the root of a gather: whether the rank's chunk already lies at its place in the
// output.
bool own_in_place(const Call& call, const Parts& parts, int rank) {
  return static_cast<const char*>(call.in) ==
         static_cast<const char*>(call.out) + own_offset_bytes(call, parts, rank);
}

void run(const Call& call, MPI_Comm comm, MPI_Datatype type, MPI_Op op, const Parts& parts) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  const auto count = static_cast<int>(call.count);
  const bool in_place = call.in == call.out;
  const void* in = in_place ? MPI_IN_PLACE : call.in;
  const int each = parts.counts[0];
  switch (call.collective) {
    case Collective::all_reduce:
      MPI_Allreduce(in, call.out, count, type, op, comm);
      break;
    case Collective::reduce_scatter:
      MPI_Reduce_scatter(call.in, call.out, parts.counts.data(), type, op, comm);
      break;
    case Collective::all_gather:
      MPI_Allgatherv(own_in_place(call, parts, rank) ? MPI_IN_PLACE : call.in,
                     parts.counts[static_cast<std::size_t>(rank)], type, call.out,
                     parts.counts.data(), parts.offsets.data(), type, comm);
      break;
    case Collective::broadcast:
      if (rank == 0 && !in_place) {  // MPI_Bcast has only one buffer
        std::memcpy(call.out, call.in, call.count * size_of(call.type));
      }
      MPI_Bcast(call.out, count, type, 0, comm);
      break;
    case Collective::reduce:
      MPI_Reduce(in_place && rank != 0 ? call.in : in, call.out, count, type, op, 0, comm);
      break;
    case Collective::barrier:
      MPI_Barrier(comm);
      break;
    case Collective::gather:
      MPI_Gather(rank == 0 && own_in_place(call, parts, rank) ? MPI_IN_PLACE : call.in, each, type,
                 call.out, each, type, 0, comm);
      break;
    case Collective::scatter:
      MPI_Scatter(call.in, each, type,
                  own_out_in_place(call, parts, rank) ? MPI_IN_PLACE : call.out, each, type, 0,
                  comm);
      break;
    case Collective::all_to_all:
      MPI_Alltoall(call.in, each, type, call.out, each, type, comm);
      break;
    case Collective::sendrecv:
      MPI_Sendrecv(call.in, count, type, call.to, 0, call.out, count, type, call.from, 0, comm,
                   MPI_STATUS_IGNORE);
      break;
    case Collective::send:  // and back
      if (rank == 0) MPI_Send(call.in, count, type, 1, 0, comm);
      if (rank < 2) MPI_Recv(call.out, count, type, call.from, 0, comm, MPI_STATUS_IGNORE);
      if (rank == 1) MPI_Send(call.in, count, type, 0, 0, comm);
      break;
    case Collective::recv:
      break;
  }
}

}  // namespace

bool has_mpi_peer() { return true; }

std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string all(text.data(), static_cast<std::size_t>(length));
  return all.substr(0, all.find_first_of(",\n"));
}

Peer mpi_peer() {
  const MPI_Comm comm = MPI_COMM_WORLD;
  return [comm](const Call& call) -> std::optional<std::function<void()>> {
    const MPI_Datatype type = mpi_type(call.type);
    const MPI_Op op = mpi_op(call.op);
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (type == MPI_DATATYPE_NULL || op == MPI_OP_NULL ||
        call.count > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
      return std::nullopt;
    }
    const Parts parts(call.count, size);
    // In place, MPI_Reduce_scatter leaves the result at the start of the buffer, not in the rank's
    // chunk.
    const bool scatters_in_place =
        call.collective == Collective::reduce_scatter &&
        static_cast<const char*>(call.in) + own_offset_bytes(call, parts, rank) ==
            static_cast<const char*>(call.out);
    if (scatters_in_place) return std::nullopt;
    return [call, comm, type, op, parts] { run(call, comm, type, op, parts); };
  };
}

}  // namespace rondo::perf
