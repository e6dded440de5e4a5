// Maps a DataType to its C++ type, for generic code.
#pragma once

#include <cstdint>

#include <rondo/types.hpp>

namespace rondo::detail {

template <class T>
struct TypeTag {
  using Type = T;
};

// Calls `visit(TypeTag<T>{})` with the element type that `type` stands for.
template <class Visitor>
auto with_type(DataType type, Visitor&& visit) {
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
    case DataType::f32:
      break;
  }
  return visit(TypeTag<float>{});
}

}  // namespace rondo::detail
