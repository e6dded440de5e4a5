// The only place where a DataType and a ReduceOp become a function.
#pragma once

#include <rondo/types.hpp>

#include "base/with_type.hpp"
#include "reduce/kernels.hpp"

namespace rondo::detail {

template <ReduceOp op>
struct OpTag {
  static constexpr ReduceOp kOp = op;
};

struct TypeAndOp {
  DataType type = DataType::f32;
  ReduceOp op = ReduceOp::sum;

  friend constexpr bool operator==(const TypeAndOp&, const TypeAndOp&) = default;
};

// The pair whose code does the same to the same bits. Integers wrap, so signed and unsigned ones
// differ in `min` and `max` alone; booleans are bytes.
constexpr TypeAndOp shared_code(DataType type, ReduceOp op) {
  if (type == DataType::boolean) {
    const bool is_xor = op == ReduceOp::bit_xor || op == ReduceOp::logical_xor;
    const bool is_or = op == ReduceOp::sum || op == ReduceOp::max || op == ReduceOp::bit_or ||
                       op == ReduceOp::logical_or;
    if (is_xor) return {DataType::u8, ReduceOp::logical_xor};
    return {DataType::u8, is_or ? ReduceOp::logical_or : ReduceOp::logical_and};
  }
  if (op == ReduceOp::min || op == ReduceOp::max) return {type, op};
  switch (type) {
    case DataType::i8:
      return {DataType::u8, op};
    case DataType::i16:
      return {DataType::u16, op};
    case DataType::i32:
      return {DataType::u32, op};
    case DataType::i64:
      return {DataType::u64, op};
    default:
      return {type, op};
  }
}

// Calls `visit(OpTag<op>{})`; T and op must be supported together. `next` is for the recursion
// alone.
template <class T, int next = 1, class Visitor>
auto with_op(ReduceOp op, Visitor&& visit) {
  if constexpr (next == kReduceOpCount) {
    return visit(OpTag<ReduceOp::sum>{});
  } else {
    constexpr auto kOp = static_cast<ReduceOp>(next);
    if constexpr (supports(kDataTypeOf<T>, kOp)) {
      if (op == kOp) return visit(OpTag<kOp>{});
    }
    return with_op<T, next + 1>(op, visit);
  }
}

// Calls `visit(TypeTag<T>{}, OpTag<op>{})` for the pair, which must be supported, or for the one
// whose code it shares.
template <class Visitor>
auto with_type_and_op(DataType type, ReduceOp op, Visitor&& visit) {
  const TypeAndOp shared = shared_code(type, op);
  return with_type(shared.type, [&](auto type_tag) {
    return with_op<typename decltype(type_tag)::Type>(
        shared.op, [&](auto op_tag) { return visit(type_tag, op_tag); });
  });
}

// Whether a pair has code of its own, which no other pair shares; and whether that is vector code.
template <class T, ReduceOp op>
inline constexpr bool kHasOwnCode =
    shared_code(kDataTypeOf<T>, op) == TypeAndOp{kDataTypeOf<T>, op};
template <class T, ReduceOp op>
inline constexpr bool kHasVectors =
    kHasOwnCode<T, op> && is_common(kDataTypeOf<T>) && is_common(op);

}  // namespace rondo::detail
