// How vectors of f32 are rounded to f16 and bf16. Compiled once for each instruction set, inside
// the files that Highway compiles so: hence the guard, which Highway's headers have too.
#if defined(RONDO_REDUCE_ROUNDING_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef RONDO_REDUCE_ROUNDING_INL
#undef RONDO_REDUCE_ROUNDING_INL
#else
#define RONDO_REDUCE_ROUNDING_INL
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace rondo::detail::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Without F16C, Highway's conversion to f16 truncates; the scalar one rounds.
#if HWY_ARCH_X86 && HWY_TARGET >= HWY_SSE4
constexpr bool kRoundsToF16 = false;
#else
constexpr bool kRoundsToF16 = true;
#endif

// f32 in 32-bit lanes, as unsigned bits whose upper half is the bf16. Highway's conversion to bf16
// truncates, so the rounding is done on the bits, as BFloat16 does it.
template <class V>
HWY_INLINE auto rounded_to_bf16(V value) {
  const hn::RebindToUnsigned<hn::DFromV<V>> words;
  const auto bits = hn::BitCast(words, value);
  const auto last = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1));
  const auto nearest = hn::Add(hn::Add(bits, hn::Set(words, 0x7FFF)), last);
  const auto quiet = hn::Or(bits, hn::Set(words, 0x400000));
  return hn::IfThenElse(hn::RebindMask(words, hn::IsNaN(value)), quiet, nearest);
}

}  // namespace
}  // namespace rondo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
