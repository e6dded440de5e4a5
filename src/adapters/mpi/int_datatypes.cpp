#include "adapters/mpi/datatypes.hpp"

#include <limits>

namespace rondo::mpi_programs {
namespace {

using Count = int;

struct Made {
  Count integers = 0;
  Count addresses = 0;
  Count types = 0;
  int combiner = 0;
};

bool how_it_was_made(MPI_Datatype type, Made& made) {
  return PMPI_Type_get_envelope(type, &made.integers, &made.addresses, &made.types,
                                &made.combiner) == MPI_SUCCESS;
}

}  // namespace

const std::size_t kMostPackedBytes = std::numeric_limits<Count>::max();

bool is_in_order(MPI_Datatype type) {
  Made made;
  if (!how_it_was_made(type, made)) return false;
  if (made.combiner == MPI_COMBINER_NAMED) return true;
  if (made.combiner != MPI_COMBINER_DUP && made.combiner != MPI_COMBINER_CONTIGUOUS) return false;
  // Of a contiguous type, the one integer is its count.
  int count = 0;
  MPI_Datatype inner = MPI_DATATYPE_NULL;
  if (PMPI_Type_get_contents(type, made.integers, made.addresses, 1, &count, nullptr, &inner) !=
      MPI_SUCCESS) {
    return false;
  }
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
  const int code = PMPI_Pack(from, static_cast<Count>(elements), type, to,
                             static_cast<Count>(bytes), &position, MPI_COMM_SELF);
  return code == MPI_SUCCESS && static_cast<std::size_t>(position) == bytes;
}

bool unpack_elements(const void* from, std::size_t bytes, void* to, std::size_t elements,
                     MPI_Datatype type) {
  Count position = 0;
  const int code = PMPI_Unpack(from, static_cast<Count>(bytes), &position, to,
                               static_cast<Count>(elements), type, MPI_COMM_SELF);
  return code == MPI_SUCCESS && static_cast<std::size_t>(position) == bytes;
}

}  // namespace rondo::mpi_programs
