// The reductions in vectors, through Google Highway: this file is compiled once for each
// instruction set, and the best one for the processor is taken when the library first needs it.

#include "reduce/kernels.hpp"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/vector.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, as Highway asks.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "reduce/dispatch.hpp"
#include "reduce/functors.hpp"
#include "reduce/lanes_inl.hpp"
#include "reduce/scalar_loop.hpp"

HWY_BEFORE_NAMESPACE();
namespace rondo::detail::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Vectors for all whole vectors, then single elements.
template <class T, bool kTwoOutputs, class VectorOp, class ScalarOp>
HWY_INLINE void vector_loop(std::byte* dst, std::byte* also, const std::byte* a, const std::byte* b,
                            std::size_t count, VectorOp op, ScalarOp scalar_op) {
  const typename Lanes<T>::Stored tag;
  using Lane = hn::TFromD<typename Lanes<T>::Stored>;
  const std::size_t elements = hn::Lanes(tag) * sizeof(Lane) / sizeof(T);
  const bool in_place = dst == b;  // then the lines of `dst` are read anyway
  prefetch_first(kTwoOutputs ? also : dst, count * sizeof(T));
  std::size_t i = 0;
  for (; i + elements <= count; i += elements) {
    const std::size_t at = i * sizeof(T);
    prefetch(a, kTwoOutputs ? also : dst, at, count * sizeof(T));
    if (kTwoOutputs && !in_place) prefetch(a, dst, at, count * sizeof(T));
    const auto value = Lanes<T>::reduced(op, hn::LoadU(tag, reinterpret_cast<const Lane*>(a + at)),
                                         hn::LoadU(tag, reinterpret_cast<const Lane*>(b + at)));
    hn::StoreU(value, tag, reinterpret_cast<Lane*>(dst + at));
    if constexpr (kTwoOutputs) hn::StoreU(value, tag, reinterpret_cast<Lane*>(also + at));
  }
  const std::size_t at = i * sizeof(T);
  scalar_loop<T>(dst + at, kTwoOutputs ? also + at : nullptr, a + at, b + at, count - i, scalar_op);
}

template <class T, class VectorOp, class ScalarOp>
HWY_INLINE void run(std::byte* dst, std::byte* also, const std::byte* a, const std::byte* b,
                    std::size_t count, VectorOp op, ScalarOp scalar_op) {
  if constexpr (std::is_same_v<T, Float16> && !kRoundsToF16) {
    scalar_loop<T>(dst, also, a, b, count, scalar_op);
  } else if (also != nullptr) {
    vector_loop<T, true>(dst, also, a, b, count, op, scalar_op);
  } else {
    vector_loop<T, false>(dst, also, a, b, count, op, scalar_op);
  }
}

template <class T>
struct VectorKernels {
  template <class VectorOp, class ScalarOp>
  static void call(std::byte* dst, std::byte* also, const std::byte* a, const std::byte* b,
                   std::size_t count, const AverageStep& /*average*/) {
    run<T>(dst, also, a, b, count, VectorOp{}, ScalarOp{});
  }
  // Highway cannot multiply these lanes on every target, so the compiler vectorises the loop.
  static void scalar_prod(std::byte* dst, std::byte* also, const std::byte* a, const std::byte* b,
                          std::size_t count, const AverageStep& /*average*/) {
    scalar_loop<T>(dst, also, a, b, count, Prod<T>{});
  }
  static void sum_then_divide(std::byte* dst, std::byte* also, const std::byte* a,
                              const std::byte* b, std::size_t count, const AverageStep& average) {
    const auto divisor = static_cast<ArithmeticOf<T>>(average.divisor);
    run<T>(dst, also, a, b, count, VectorSumThenDivide<ArithmeticOf<T>>{divisor},
           SumThenDivide<T>{divisor});
  }
  static void sum_of_parts(std::byte* dst, std::byte* also, const std::byte* a, const std::byte* b,
                           std::size_t count, const AverageStep& average) {
    run<T>(dst, also, a, b, count, VectorSumOfParts{average},
           SumOfParts<T>{average.scale_a, average.scale_b});
  }
  static void sum_of_parts_then_divide(std::byte* dst, std::byte* also, const std::byte* a,
                                       const std::byte* b, std::size_t count,
                                       const AverageStep& average) {
    run<T>(dst, also, a, b, count, VectorSumOfPartsThenDivide{average},
           SumOfPartsThenDivide<T>{{average.scale_a, average.scale_b}, average.divisor});
  }
  static constexpr ReduceKernel same(ReduceFunction function) { return {function, function}; }
  template <ReduceOp op>
  static constexpr ReduceKernel of() {
    if constexpr (op == ReduceOp::prod && std::is_integral_v<T> && sizeof(T) != 4) {
      return same(scalar_prod);
    } else if constexpr (op == ReduceOp::prod) {
      return same(call<VectorProd, Prod<T>>);
    } else if constexpr (op == ReduceOp::min) {
      return same(call<VectorMin, Min<T>>);
    } else if constexpr (op == ReduceOp::max) {
      return same(call<VectorMax, Max<T>>);
    } else if constexpr (op == ReduceOp::avg && kSumsAsParts<T>) {
      return {sum_of_parts, sum_of_parts_then_divide};
    } else if constexpr (op == ReduceOp::avg) {
      return {call<VectorSum, Sum<T>>, sum_then_divide};
    } else {
      return same(call<VectorSum, Sum<T>>);
    }
  }
};

using ByteTag = hn::ScalableTag<std::uint8_t>;

HWY_INLINE auto load_bytes(ByteTag tag, const std::byte* from) {
  return hn::LoadU(tag, reinterpret_cast<const std::uint8_t*>(from));
}

void copy_cached(std::byte* dst, const std::byte* src, std::size_t bytes) {
  const ByteTag tag;
  const std::size_t lanes = hn::Lanes(tag);
  prefetch_first(dst, bytes);
  std::size_t at = 0;
  for (; at + lanes <= bytes; at += lanes) {
    prefetch(src, dst, at, bytes);
    hn::StoreU(load_bytes(tag, src + at), tag, reinterpret_cast<std::uint8_t*>(dst + at));
  }
  std::memcpy(dst + at, src + at, bytes - at);
}

void copy_non_temporal(std::byte* dst, const std::byte* src, std::size_t bytes) {
  const ByteTag tag;
  const std::size_t lanes = hn::Lanes(tag);
  const std::size_t to_border = (lanes - reinterpret_cast<std::uintptr_t>(dst) % lanes) % lanes;
  std::size_t at = to_border < bytes ? to_border : bytes;
  std::memcpy(dst, src, at);
  for (; at + lanes <= bytes; at += lanes) {
    if (at + kReadAheadBytes < bytes) __builtin_prefetch(src + at + kReadAheadBytes);
    hn::Stream(load_bytes(tag, src + at), tag, reinterpret_cast<std::uint8_t*>(dst + at));
  }
  std::memcpy(dst + at, src + at, bytes - at);
  hwy::FlushStream();
}

CopyKernel select_copy() { return {copy_cached, copy_non_temporal}; }

ReduceKernel select(DataType type, ReduceOp op) {
  return with_type_and_op(type, op, [](auto type_tag, auto op_tag) -> ReduceKernel {
    using T = typename decltype(type_tag)::Type;
    constexpr ReduceOp kOp = decltype(op_tag)::kOp;
    if constexpr (kHasVectors<T, kOp>) {
      return VectorKernels<T>::template of<kOp>();
    } else {
      return {};
    }
  });
}

}  // namespace
}  // namespace rondo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::detail {

HWY_EXPORT(select);
HWY_EXPORT(select_copy);

ReduceKernel vector_kernel(DataType type, ReduceOp op) {
  const ReduceKernel vectors = HWY_DYNAMIC_DISPATCH(select)(type, op);
  return vectors.combine != nullptr ? vectors : reference_kernel(type, op);
}

CopyKernel vector_copy() { return HWY_DYNAMIC_DISPATCH(select_copy)(); }

}  // namespace rondo::detail
#endif
