// MPI 4 has forms of these functions for MPI_Count, which types made by such forms need.
#pragma once

#include <mpi.h>

namespace rondo::mpi_programs {

using Count = MPI_Count;

// How a datatype was made.
struct Made {
  Count integers = 0;
  Count addresses = 0;
  Count large_counts = 0;
  Count types = 0;
  int combiner = 0;
};

inline bool how_it_was_made(MPI_Datatype type, Made& made) {
  return PMPI_Type_get_envelope_c(type, &made.integers, &made.addresses, &made.large_counts,
                                  &made.types, &made.combiner) == MPI_SUCCESS;
}

// The type that a duplicate or a contiguous type, which has one count, was made from.
inline bool made_from(MPI_Datatype type, const Made& made, MPI_Datatype& inner) {
  int count = 0;
  Count large_count = 0;
  return PMPI_Type_get_contents_c(type, made.integers, made.addresses, made.large_counts, 1, &count,
                                  nullptr, &large_count, &inner) == MPI_SUCCESS;
}

inline int pack(const void* from, Count elements, MPI_Datatype type, void* to, Count bytes,
                Count& position) {
  return PMPI_Pack_c(from, elements, type, to, bytes, &position, MPI_COMM_SELF);
}

inline int unpack(const void* from, Count bytes, Count& position, void* to, Count elements,
                  MPI_Datatype type) {
  return PMPI_Unpack_c(from, bytes, &position, to, elements, type, MPI_COMM_SELF);
}

}  // namespace rondo::mpi_programs
