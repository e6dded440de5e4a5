// What MPI's datatypes and operations are in Rondo.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <optional>

#include <rondo/types.hpp>
#include <rondo/user_reduction.hpp>

namespace rondo::mpi_programs {

// How a datatype lies in memory. `bytes`: of its elements, without gaps; the same on all ranks that
// pass matching types.
struct Layout {
  std::size_t bytes = 0;
  std::ptrdiff_t extent = 0;
  bool without_gaps = false;  // between elements, or in them; the first is at the buffer's address
  bool contiguous = false;    // that, and what is sent is the memory from first to last byte
};
// Nothing for what is no datatype.
std::optional<Layout> layout_of(MPI_Datatype type);

// How a pair of datatype and operation is reduced: by one of Rondo's reductions, or else by MPI's
// own function, element by element.
struct Reducing {
  DataType type = DataType::u8;
  ReduceOp op = ReduceOp::sum;
  std::optional<UserReduction> by_mpi;
  bool of_program = false;  // the program made the operation, and may free it
};
// Nothing for pairs that are left to MPI: that depends on the pair alone. MPI demands the same pair
// on all ranks where the operation is its own. Where it is the program's, ranks might pass
// datatypes that match and differ; of those, Rondo takes what has no gaps, and so a program must
// not mix datatypes with gaps and without in one call.
std::optional<Reducing> reducing_of(MPI_Datatype type, MPI_Op op);

}  // namespace rondo::mpi_programs
