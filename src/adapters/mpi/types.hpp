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
  bool contiguous = false;  // elements without gaps, side by side from the buffer's address on
};
// Nothing for what is no datatype.
std::optional<Layout> layout_of(MPI_Datatype type);

// How a pair of datatype and operation is reduced: by one of Rondo's reductions, or else by MPI's
// own function, element by element.
struct Reducing {
  DataType type = DataType::u8;
  ReduceOp op = ReduceOp::sum;
  std::optional<UserReduction> by_mpi;
};
// Nothing for pairs that are left to MPI: that depends on the pair alone, which is the same on all
// ranks.
std::optional<Reducing> reducing_of(MPI_Datatype type, MPI_Op op);

}  // namespace rondo::mpi_programs
