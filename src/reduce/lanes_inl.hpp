// Elements in vectors, their operations and the prefetches of loops over them. Compiled once for
// each instruction set, inside the files that Highway compiles so: hence the guard, which Highway's
// headers have too.
#if defined(RONDO_REDUCE_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef RONDO_REDUCE_LANES_INL
#undef RONDO_REDUCE_LANES_INL
#else
#define RONDO_REDUCE_LANES_INL
#endif

#include <algorithm>
#include <cstddef>

#include <hwy/highway.h>

#include <rondo/types.hpp>

#include "reduce/kernels.hpp"
#include "reduce/rounding_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rondo::detail::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Reduces vectors of elements of type T as they are stored in memory. No struct holds vectors here:
// the compiler does not know the size of SVE vectors.
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

// An f32 is a bf16 with 16 more bits below, so 32-bit lanes hold two elements, at an even and at an
// odd place, and nothing has to move between lanes.
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
  // Both in f32; rounds them.
  template <class F>
  static HWY_INLINE auto joined(F even_places, F odd_places) {
    return hn::Or(hn::ShiftRight<16>(rounded_to_bf16(even_places)),
                  upper_half(rounded_to_bf16(odd_places)));
  }
  template <class Op, class V>
  static HWY_INLINE V reduced(Op op, V a, V b) {
    return joined(op(even(a), even(b)), op(odd(a), odd(b)));
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
// The additions of an average of 16-bit floats; in f32.
template <class V>
HWY_INLINE V vector_parts(const AverageStep& average, V a, V b) {
  const hn::DFromV<V> tag;
  return hn::Add(hn::Mul(a, hn::Set(tag, average.scale_a)),
                 hn::Mul(b, hn::Set(tag, average.scale_b)));
}
struct VectorSumOfParts {
  AverageStep average;
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return vector_parts(average, a, b);
  }
};
struct VectorSumOfPartsThenDivide {
  AverageStep average;
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Div(vector_parts(average, a, b), hn::Set(hn::DFromV<V>(), average.divisor));
  }
};

// The cache lines of a slot are in another core's cache: that core wrote them before this core
// reads them, or read them before this core writes them. The processor's own prefetchers stop at
// each 4 KiB page. These distances were the best of those tried on a 2-core machine
// (docs/performance.md).
constexpr std::size_t kReadAheadBytes = 2048;
constexpr std::size_t kWriteAheadBytes = 512;

constexpr std::size_t kLineBytes = 64;

// In assembly, since without -mprfchw the compiler would request the cache line for reading, and
// the write would request it again. 64-bit processors without this instruction treat it as a no-op.
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

}  // namespace
}  // namespace rondo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
