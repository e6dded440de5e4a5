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
#include "reduce/rounding_inl.hpp"
#include "reduce/scalar_loop.hpp"

HWY_BEFORE_NAMESPACE();
namespace rondo::detail::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Reduces vectors of elements of type T as they are stored in memory. No struct holds vectors here: the compiler
// does not know the size of SVE vectors.
template <class T>
struct Lanes {
  using Stored = hn::ScalableTag<T>;
  template <class Op, class V>
  static HWY_INLINE V reduced(Op op, V a, V b) {
    return op(a, b);
  }
};

template <>
struct Lanes<Float16> {
  using Computed = hn::ScalableTag<float>;
  using Stored = hn::Rebind<hwy::float16_t, Computed>;
  template <class Op, class V>
  static HWY_INLINE V reduced(Op op, V a, V b) {
    const Computed computed;
    return hn::DemoteTo(Stored{}, op(hn::PromoteTo(computed, a), hn::PromoteTo(computed, b)));
  }
};

// An f32 is a bf16 with 16 more bits below, so 32-bit lanes hold two elements, at an even and at an odd place,
// and nothing has to move between lanes.
template <>
struct Lanes<BFloat16> {
  using Computed = hn::ScalableTag<float>;
  using Stored = hn::RebindToUnsigned<Computed>;
  template <class V>
  static HWY_INLINE auto even(V pairs) {
    return hn::BitCast(Computed{}, hn::ShiftLeft<16>(pairs));
  }
  template <class V>
  static HWY_INLINE auto odd(V pairs) {
    return hn::BitCast(Computed{}, upper_half(pairs));
  }
  template <class V>
  static HWY_INLINE V upper_half(V bits) {
    return hn::And(bits, hn::Set(Stored{}, 0xFFFF0000U));
  }
  template <class Op, class V>
  static HWY_INLINE V reduced(Op op, V a, V b) {
    const auto even_places = rounded_to_bf16(op(even(a), even(b)));
    const auto odd_places = rounded_to_bf16(op(odd(a), odd(b)));
    return hn::Or(hn::ShiftRight<16>(even_places), upper_half(odd_places));
  }
};

struct VectorSum {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Add(a, b);
  }
};
struct VectorProd {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Mul(a, b);
  }
};
struct VectorMin {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
      return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b);
    } else {
      return hn::Min(a, b);
    }
  }
};
struct VectorMax {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>()) {
      return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
    } else {
      return hn::Max(a, b);
    }
  }
};
template <class Lane>
struct VectorSumThenDivide {
  Lane divisor;
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Div(hn::Add(a, b), hn::Set(hn::DFromV<V>(), divisor));
  }
};

// The cache lines of a slot are in another core's cache: that core wrote them before this core reads them, or read
// them before this core writes them. The processor's own prefetchers stop at each 4 KiB page. These distances were
// the best of those tried on a 2-core machine (docs/performance.md).
constexpr std::size_t kReadAheadBytes = 2048;
constexpr std::size_t kWriteAheadBytes = 512;

constexpr std::size_t kLineBytes = 64;

// In assembly, since without -mprfchw the compiler would request the cache line for reading, and the write would
// request it again. 64-bit processors without this instruction treat it as a no-op.
HWY_INLINE void prefetch_to_write(const std::byte* at) {
#if HWY_ARCH_X86
  asm volatile("prefetchw %0" : : "m"(*at));
#else
  __builtin_prefetch(at, 1);
#endif
}

// Prefetches what a loop at byte `at` of `bytes` needs soon, but nothing beyond `bytes`.
HWY_INLINE void prefetch(const std::byte* read, const std::byte* written, std::size_t at,
                         std::size_t bytes) {
  if (at + kReadAheadBytes < bytes) __builtin_prefetch(read + at + kReadAheadBytes);
  if (at + kWriteAheadBytes < bytes) prefetch_to_write(written + at + kWriteAheadBytes);
}

// Prefetches the first lines that such a loop writes.
HWY_INLINE void prefetch_first(const std::byte* written, std::size_t bytes) {
  for (std::size_t at = 0; at < std::min(kWriteAheadBytes, bytes); at += kLineBytes)
    prefetch_to_write(written + at);
}

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
                   std::size_t count, int /*ranks*/) {
    run<T>(dst, also, a, b, count, VectorOp{}, ScalarOp{});
  }
  // Highway cannot multiply these lanes on every target, so the compiler vectorises the loop.
  static void scalar_prod(std::byte* dst, std::byte* also, const std::byte* a, const std::byte* b,
                          std::size_t count, int /*ranks*/) {
    scalar_loop<T>(dst, also, a, b, count, Prod<T>{});
  }
  static constexpr ReduceFunction pick_prod() {
    if constexpr (std::is_integral_v<T> && sizeof(T) != 4) {
      return scalar_prod;
    } else {
      return call<VectorProd, Prod<T>>;
    }
  }
  static constexpr ReduceFunction sum = call<VectorSum, Sum<T>>;
  static constexpr ReduceFunction prod = pick_prod();
  static constexpr ReduceFunction min = call<VectorMin, Min<T>>;
  static constexpr ReduceFunction max = call<VectorMax, Max<T>>;
  static void sum_then_divide(std::byte* dst, std::byte* also, const std::byte* a,
                              const std::byte* b, std::size_t count, int ranks) {
    const auto divisor = static_cast<ArithmeticOf<T>>(ranks);
    run<T>(dst, also, a, b, count, VectorSumThenDivide<ArithmeticOf<T>>{divisor},
           SumThenDivide<T>{divisor});
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

ReduceKernel select(DataType type, ReduceOp op) { return select_kernel<VectorKernels>(type, op); }

}  // namespace
}  // namespace rondo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::detail {

HWY_EXPORT(select);
HWY_EXPORT(select_copy);

ReduceKernel vector_kernel(DataType type, ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(select)(type, op);
}

CopyKernel vector_copy() { return HWY_DYNAMIC_DISPATCH(select_copy)(); }

}  // namespace rondo::detail
#endif
