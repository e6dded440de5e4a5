// Up to MPI 3, counts are int.
#pragma once

#include <mpi.h>

namespace rondo::mpi_programs {

using Count = int;

// How a datatype was made.
struct Made {
  Count integers = 0;
  Count addresses = 0;
  Count types = 0;
  int combiner = 0;
};

inline bool how_it_was_made(MPI_Datatype type, Made& made) {
  return PMPI_Type_get_envelope(type, &made.integers, &made.addresses, &made.types,
                                &made.combiner) == MPI_SUCCESS;
}

// The type that a duplicate or a contiguous type, which has one count, was made from.
inline bool made_from(MPI_Datatype type, const Made& made, MPI_Datatype& inner) {
  int count = 0;
  return PMPI_Type_get_contents(type, made.integers, made.addresses, 1, &count, nullptr, &inner) ==
         MPI_SUCCESS;
}

inline int pack(const void* from, Count elements, MPI_Datatype type, void* to, Count bytes,
                Count& position) {
  return PMPI_Pack(from, elements, type, to, bytes, &position, MPI_COMM_SELF);
}

inline int unpack(const void* from, Count bytes, Count& position, void* to, Count elements,
                  MPI_Datatype type) {
  return PMPI_Unpack(from, bytes, &position, to, elements, type, MPI_COMM_SELF);
}

}  // namespace rondo::mpi_programs
