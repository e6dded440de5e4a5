// What MPI tells about datatypes, and does with them.
#pragma once

#include <mpi.h>

#include <cstddef>

namespace rondo::mpi_programs {

// Whether the elements of a datatype are sent in the order in which they lie in memory, as far as
// that is seen by how it was made: an indexed type, say, may have another order.
bool is_in_order(MPI_Datatype type);

// The most bytes that pack_elements() and unpack_elements() take.
extern const std::size_t kMostPackedBytes;

// MPI_Pack() and MPI_Unpack() of elements that are so many bytes when packed. They return whether
// MPI has packed them as so many bytes.
bool pack_elements(const void* from, std::size_t elements, MPI_Datatype type, void* to,
                   std::size_t bytes);
bool unpack_elements(const void* from, std::size_t bytes, void* to, std::size_t elements,
                     MPI_Datatype type);

}  // namespace rondo::mpi_programs
