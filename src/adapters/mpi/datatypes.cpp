#include "adapters/mpi/datatypes.hpp"

#include <limits>

#include <type_functions.hpp>

namespace rondo::mpi_programs {

const std::size_t kMostPackedBytes = std::numeric_limits<Count>::max();

bool is_in_order(MPI_Datatype type) {
  Made made;
  if (!how_it_was_made(type, made)) return false;
  if (made.combiner == MPI_COMBINER_NAMED) return true;
  if (made.combiner != MPI_COMBINER_DUP && made.combiner != MPI_COMBINER_CONTIGUOUS) return false;
  MPI_Datatype inner = MPI_DATATYPE_NULL;
  if (!made_from(type, made, inner)) return false;
  const bool in_order = is_in_order(inner);
  Made of_inner;
  if (how_it_was_made(inner, of_inner) && of_inner.combiner != MPI_COMBINER_NAMED) {
    PMPI_Type_free(&inner);
  }
  return in_order;
}

bool pack_elements(const void* from, std::size_t elements, MPI_Datatype type, void* to,
                   std::size_t bytes) {
  Count position = 0;
  const int code =
      pack(from, static_cast<Count>(elements), type, to, static_cast<Count>(bytes), position);
  return code == MPI_SUCCESS && static_cast<std::size_t>(position) == bytes;
}

bool unpack_elements(const void* from, std::size_t bytes, void* to, std::size_t elements,
                     MPI_Datatype type) {
  Count position = 0;
  const int code =
      unpack(from, static_cast<Count>(bytes), position, to, static_cast<Count>(elements), type);
  return code == MPI_SUCCESS && static_cast<std::size_t>(position) == bytes;
}

}  // namespace rondo::mpi_programs
