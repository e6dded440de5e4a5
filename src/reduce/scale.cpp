// Scales in vectors, through Google Highway, as vector.cpp does: compiled once for each instruction
// set.

#include "reduce/scale.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/scale.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, as Highway asks.
#include <hwy/highway.h>

#include "base/float_state.hpp"
#include "base/with_type.hpp"
#include "reduce/rounding_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rondo::detail::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::RebindToUnsigned<Floats>;

HWY_INLINE auto load(Floats tag, const float* from) { return hn::LoadU(tag, from); }
template <class V>
HWY_INLINE void store(Floats tag, V value, float* to) {
  hn::StoreU(value, tag, to);
}

HWY_INLINE auto load(Floats tag, const Float16* from) {
  const hn::Rebind<hwy::float16_t, Floats> narrow;
  return hn::PromoteTo(tag, hn::LoadU(narrow, reinterpret_cast<const hwy::float16_t*>(from)));
}
template <class V>
HWY_INLINE void store(Floats /*tag*/, V value, Float16* to) {
  const hn::Rebind<hwy::float16_t, Floats> narrow;
  hn::StoreU(hn::DemoteTo(narrow, value), narrow, reinterpret_cast<hwy::float16_t*>(to));
}

HWY_INLINE auto load(Floats tag, const BFloat16* from) {
  const hn::Rebind<std::uint16_t, Floats> narrow;
  const auto bits =
      hn::PromoteTo(Words(), hn::LoadU(narrow, reinterpret_cast<const std::uint16_t*>(from)));
  return hn::BitCast(tag, hn::ShiftLeft<16>(bits));
}
template <class V>
HWY_INLINE void store(Floats /*tag*/, V value, BFloat16* to) {
  const hn::Rebind<std::uint16_t, Floats> narrow;
  const hn::RebindToSigned<Words> with_sign;
  const auto upper = hn::ShiftRight<16>(rounded_to_bf16(value));
  hn::StoreU(hn::DemoteTo(narrow, hn::BitCast(with_sign, upper)), narrow,
             reinterpret_cast<std::uint16_t*>(to));
}

// Elements that need not be aligned: a copy of bytes, since one of the elements' type would promise
// the compiler that they are.
template <class T>
HWY_INLINE T get(const T* from) {
  T value;
  const auto* bytes = reinterpret_cast<const std::byte*>(from);
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}
template <class T>
HWY_INLINE void put(T* to, T value) {
  auto* bytes = reinterpret_cast<std::byte*>(to);
  std::memcpy(bytes, &value, sizeof(T));
}

template <class To, class From>
void scale_floats(To* to, const From* from, std::size_t count, float factor) {
  const Floats tag;
  const auto factors = hn::Set(tag, factor);
  std::size_t i = 0;
  if constexpr (!std::same_as<To, Float16> || kRoundsToF16) {
    for (; i + hn::Lanes(tag) <= count; i += hn::Lanes(tag)) {
      store(tag, hn::Mul(load(tag, from + i), factors), to + i);
    }
  }
  for (; i < count; ++i) put(to + i, static_cast<To>(static_cast<float>(get(from + i)) * factor));
}

void scale_doubles(double* to, const double* from, std::size_t count, double factor) {
  for (std::size_t i = 0; i < count; ++i) put(to + i, get(from + i) * factor);
}

void scale(void* to, DataType to_type, const void* from, DataType from_type, std::size_t count,
           double factor) {
  with_common_type(to_type, [&](auto to_tag) {
    with_common_type(from_type, [&](auto from_tag) {
      using To = typename decltype(to_tag)::Type;
      using From = typename decltype(from_tag)::Type;
      constexpr bool has_float = std::same_as<To, float> || std::same_as<From, float>;
      constexpr bool narrow_to = std::same_as<To, Float16> || std::same_as<To, BFloat16>;
      constexpr bool narrow_from = std::same_as<From, Float16> || std::same_as<From, BFloat16>;
      if constexpr (std::same_as<To, double> && std::same_as<From, double>) {
        scale_doubles(static_cast<double*>(to), static_cast<const double*>(from), count, factor);
      } else if constexpr ((has_float && (narrow_to || narrow_from)) ||
                           (std::same_as<To, From> && (has_float || narrow_to))) {
        scale_floats(static_cast<To*>(to), static_cast<const From*>(from), count,
                     static_cast<float>(factor));
      }
    });
  });
}

}  // namespace
}  // namespace rondo::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rondo::detail {

HWY_EXPORT(scale);

void scale(void* to, DataType to_type, const void* from, DataType from_type, std::size_t count,
           double factor) {
  if (to_type != from_type || factor != 1) {
    const FloatState float_state(true);
    HWY_DYNAMIC_DISPATCH(scale)(to, to_type, from, from_type, count, factor);
  } else if (to != from && count > 0) {
    std::memcpy(to, from, count * size_of(to_type));
  }
}

}  // namespace rondo::detail
#endif
