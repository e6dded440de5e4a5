// Maps a DataType to its C++ type, for generic code.
#pragma once

#include <complex>
#include <cstdint>

#include <rondo/types.hpp>

namespace rondo::detail {

template <class T>
struct TypeTag {
  using Type = T;
};

// The types and reductions that have vector code, and kernels on devices. The others are plain
// loops over host memory.
constexpr bool is_common(DataType type) { return type <= DataType::u64; }
constexpr bool is_common(ReduceOp op) { return op <= ReduceOp::avg; }

// Calls `visit(TypeTag<T>{})` with the element type that `type` stands for, which must be a common
// one.
template <class Visitor>
auto with_common_type(DataType type, Visitor&& visit) {
  switch (type) {
    case DataType::f64:
      return visit(TypeTag<double>{});
    case DataType::f16:
      return visit(TypeTag<Float16>{});
    case DataType::bf16:
      return visit(TypeTag<BFloat16>{});
    case DataType::i8:
      return visit(TypeTag<std::int8_t>{});
    case DataType::u8:
      return visit(TypeTag<std::uint8_t>{});
    case DataType::i32:
      return visit(TypeTag<std::int32_t>{});
    case DataType::u32:
      return visit(TypeTag<std::uint32_t>{});
    case DataType::i64:
      return visit(TypeTag<std::int64_t>{});
    case DataType::u64:
      return visit(TypeTag<std::uint64_t>{});
    default:
      return visit(TypeTag<float>{});
  }
}

// The same for every type. Booleans are bytes here, since a byte that is neither 0 nor 1 may not be
// read as a bool.
template <class Visitor>
auto with_type(DataType type, Visitor&& visit) {
  switch (type) {
    case DataType::i16:
      return visit(TypeTag<std::int16_t>{});
    case DataType::u16:
      return visit(TypeTag<std::uint16_t>{});
    case DataType::c64:
      return visit(TypeTag<std::complex<float>>{});
    case DataType::c128:
      return visit(TypeTag<std::complex<double>>{});
    case DataType::boolean:
      return visit(TypeTag<std::uint8_t>{});
    default:
      return with_common_type(type, visit);
  }
}

}  // namespace rondo::detail
