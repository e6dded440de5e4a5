#include "adapters/mpi/types.hpp"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "adapters/mpi/datatypes.hpp"

namespace rondo::mpi_programs {
namespace {

template <class T>
constexpr DataType kIntegerOf = kDataTypeOf<T>;

struct KnownType {
  MPI_Datatype type;
  DataType in_rondo;
};
// Types of C, of C++ and of fixed size. Those of Fortran are left to MPI.
const std::vector<KnownType>& known_types() {
  static const std::vector<KnownType> kKnown = {
      {MPI_FLOAT, DataType::f32},
      {MPI_DOUBLE, DataType::f64},
      {MPI_INT, kIntegerOf<int>},
      {MPI_LONG, kIntegerOf<long>},
      {MPI_LONG_LONG, kIntegerOf<long long>},
      {MPI_SHORT, kIntegerOf<short>},
      {MPI_SIGNED_CHAR, DataType::i8},
      {MPI_UNSIGNED_CHAR, DataType::u8},
      {MPI_BYTE, DataType::u8},
      {MPI_UNSIGNED_SHORT, kIntegerOf<unsigned short>},
      {MPI_UNSIGNED, kIntegerOf<unsigned>},
      {MPI_UNSIGNED_LONG, kIntegerOf<unsigned long>},
      {MPI_UNSIGNED_LONG_LONG, kIntegerOf<unsigned long long>},
      {MPI_INT8_T, DataType::i8},
      {MPI_INT16_T, DataType::i16},
      {MPI_INT32_T, DataType::i32},
      {MPI_INT64_T, DataType::i64},
      {MPI_UINT8_T, DataType::u8},
      {MPI_UINT16_T, DataType::u16},
      {MPI_UINT32_T, DataType::u32},
      {MPI_UINT64_T, DataType::u64},
      {MPI_AINT, kIntegerOf<MPI_Aint>},
      {MPI_OFFSET, kIntegerOf<MPI_Offset>},
      {MPI_COUNT, kIntegerOf<MPI_Count>},
      {MPI_C_BOOL, DataType::boolean},
      {MPI_CXX_BOOL, DataType::boolean},
      {MPI_C_FLOAT_COMPLEX, DataType::c64},
      {MPI_C_DOUBLE_COMPLEX, DataType::c128},
      {MPI_CXX_FLOAT_COMPLEX, DataType::c64},
      {MPI_CXX_DOUBLE_COMPLEX, DataType::c128},
  };
  return kKnown;
}

struct KnownOp {
  MPI_Op op;
  ReduceOp in_rondo;
};
const std::vector<KnownOp>& known_ops() {
  static const std::vector<KnownOp> kKnown = {
      {MPI_SUM, ReduceOp::sum},          {MPI_PROD, ReduceOp::prod},
      {MPI_MIN, ReduceOp::min},          {MPI_MAX, ReduceOp::max},
      {MPI_LAND, ReduceOp::logical_and}, {MPI_LOR, ReduceOp::logical_or},
      {MPI_LXOR, ReduceOp::logical_xor}, {MPI_BAND, ReduceOp::bit_and},
      {MPI_BOR, ReduceOp::bit_or},       {MPI_BXOR, ReduceOp::bit_xor},
  };
  return kKnown;
}

std::optional<DataType> known_type(MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL) return std::nullopt;  // as types that an MPI lacks are
  for (const KnownType& known : known_types()) {
    if (known.type == type) return known.in_rondo;
  }
  return std::nullopt;
}

// The pairs of MPI_MINLOC and MPI_MAXLOC.
bool is_pair(MPI_Datatype type) {
  return type == MPI_FLOAT_INT || type == MPI_DOUBLE_INT || type == MPI_LONG_INT ||
         type == MPI_2INT || type == MPI_SHORT_INT || type == MPI_LONG_DOUBLE_INT;
}

bool is_built_in(MPI_Op op) {
  for (const KnownOp& known : known_ops()) {
    if (known.op == op) return true;
  }
  return op == MPI_MINLOC || op == MPI_MAXLOC || op == MPI_REPLACE || op == MPI_NO_OP ||
         op == MPI_OP_NULL;
}

// MPI defines these for fewer types than Rondo does.
bool allowed_by_mpi(MPI_Datatype type, DataType in_rondo, ReduceOp op) {
  const bool logical = op >= ReduceOp::logical_and;
  const bool by_bits = op >= ReduceOp::bit_and && !logical;
  if (in_rondo == DataType::boolean) return logical;
  if (type == MPI_BYTE) return by_bits;
  const bool of_addresses = type == MPI_AINT || type == MPI_OFFSET || type == MPI_COUNT;
  return !of_addresses || !logical;
}

UserReduction by_mpi(MPI_Datatype type, MPI_Op op, std::size_t element_bytes) {
  int commutes = 0;
  if (PMPI_Op_commutative(op, &commutes) != MPI_SUCCESS) commutes = 0;
  UserReduction reduction;
  reduction.element_bytes = element_bytes;
  reduction.commutative = commutes != 0;
  reduction.combine = [type, op, element_bytes](const void* in, void* in_out, std::size_t count) {
    constexpr std::size_t kMost = INT_MAX;
    for (std::size_t done = 0; done < count; done += kMost) {
      const auto some = static_cast<int>(std::min(kMost, count - done));
      const std::size_t at = done * element_bytes;
      const int code = PMPI_Reduce_local(static_cast<const std::byte*>(in) + at,
                                         static_cast<std::byte*>(in_out) + at, some, type, op);
      if (code != MPI_SUCCESS) throw std::runtime_error("MPI_Reduce_local has failed");
    }
  };
  return reduction;
}

}  // namespace

std::optional<Layout> layout_of(MPI_Datatype type) {
  if (const auto known = known_type(type)) {
    return Layout{size_of(*known), static_cast<std::ptrdiff_t>(size_of(*known)), true, true};
  }
  if (type == MPI_DATATYPE_NULL) return std::nullopt;
  MPI_Count size = 0;
  MPI_Count lower = 0;
  MPI_Count extent = 0;
  MPI_Count true_lower = 0;
  MPI_Count true_extent = 0;
  if (PMPI_Type_size_x(type, &size) != MPI_SUCCESS || size < 0) return std::nullopt;
  if (PMPI_Type_get_extent_x(type, &lower, &extent) != MPI_SUCCESS) return std::nullopt;
  if (PMPI_Type_get_true_extent_x(type, &true_lower, &true_extent) != MPI_SUCCESS) {
    return std::nullopt;
  }
  Layout layout;
  layout.bytes = static_cast<std::size_t>(size);
  layout.extent = static_cast<std::ptrdiff_t>(extent);
  layout.without_gaps = lower == 0 && true_lower == 0 && extent == size && true_extent == size;
  layout.contiguous = layout.without_gaps && is_in_order(type);
  return layout;
}

std::optional<Reducing> reducing_of(MPI_Datatype type, MPI_Op op) {
  const auto known = known_type(type);
  for (const KnownOp& one : known_ops()) {
    if (one.op != op) continue;
    if (!known || !supports(*known, one.in_rondo)) return std::nullopt;
    if (!allowed_by_mpi(type, *known, one.in_rondo)) return std::nullopt;
    return Reducing{*known, one.in_rondo, std::nullopt, false};
  }
  const bool finds_place = op == MPI_MINLOC || op == MPI_MAXLOC;
  if (finds_place ? !is_pair(type) : is_built_in(op)) return std::nullopt;
  const auto layout = layout_of(type);
  // Elements travel as they lie in memory, so the gaps of a program's own type would be written. In
  // MPI's pairs only the bytes are that its struct has between value and index, or at its end.
  if (!layout || layout->extent <= 0 || (!layout->without_gaps && !finds_place)) {
    return std::nullopt;
  }
  return Reducing{DataType::u8, ReduceOp::sum,
                  by_mpi(type, op, static_cast<std::size_t>(layout->extent)), !finds_place};
}

}  // namespace rondo::mpi_programs
