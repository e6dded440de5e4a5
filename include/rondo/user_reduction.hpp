/// \file
/// Reductions of the program's own: a function on arrays of elements of any size.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#include <rondo/export.hpp>

namespace rondo {

/// How elements of different ranks become one, by a function of the program. For all_reduce,
/// reduce_scatter and reduce of host memory; the members of Communicator that take one copy it.
///
///     struct Best { double score; std::int32_t who; };
///     const auto best = rondo::reduction_of<Best>(
///         [](const Best& a, const Best& b) { return a.score >= b.score ? a : b; });
///     comm.all_reduce(std::span(&mine, 1), best);
///
/// All ranks pass the same function, which is associative. Any thread of the library or of the
/// program may call it, for different calls at the same time, any number of times for one call, and
/// for any part of its elements. It must not call into Rondo. What it throws ends the communicator,
/// and the rank's call throws that.
struct UserReduction {
  /// in_out[i] ← in[i] op in_out[i], for `count` elements. `in` comes from lower ranks than
  /// `in_out` where the reduction does not commute. The two do not overlap. They are aligned as the
  /// call's buffers are, up to alignof(std::max_align_t), if `element_bytes` is a multiple of that.
  std::function<void(const void* in, void* in_out, std::size_t count)> combine;
  /// Bytes of one element, at least 1.
  std::size_t element_bytes = 1;
  /// Whether a op b is b op a. If not, elements are reduced in the order of ranks.
  bool commutative = true;
};

/// The reduction that applies `function`, T of two T, to each pair of elements.
template <class T, class Function>
  requires std::is_trivially_copyable_v<T> && std::default_initializable<T> &&
           std::is_invocable_r_v<T, const Function&, const T&, const T&>
UserReduction reduction_of(Function function, bool commutative = true) {
  UserReduction reduction;
  reduction.element_bytes = sizeof(T);
  reduction.commutative = commutative;
  reduction.combine = [function](const void* in, void* in_out, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      T a;
      T b;
      std::memcpy(&a, static_cast<const std::byte*>(in) + i * sizeof(T), sizeof(T));
      std::memcpy(&b, static_cast<std::byte*>(in_out) + i * sizeof(T), sizeof(T));
      b = function(a, b);
      std::memcpy(static_cast<std::byte*>(in_out) + i * sizeof(T), &b, sizeof(T));
    }
  };
  return reduction;
}

/// A value and where it was found: a rank, or an index. Laid out as in C, so that `Located<float>`
/// is MPI's MPI_FLOAT_INT, `Located<double>` MPI_DOUBLE_INT, and so on.
template <class T, std::integral Index = std::int32_t>
  requires std::is_arithmetic_v<T>
struct Located {
  T value{};
  Index index{};

  friend bool operator==(const Located&, const Located&) = default;
};

namespace detail {
template <class T, class Index>
Located<T, Index> pick_located(const Located<T, Index>& a, const Located<T, Index>& b,
                               bool a_wins) {
  const bool a_is_nan = a.value != a.value;  // NOLINT(misc-redundant-expression)
  const bool b_is_nan = b.value != b.value;  // NOLINT(misc-redundant-expression)
  const bool equal = a.value == b.value || (a_is_nan && b_is_nan);
  if (equal) return a.index <= b.index ? a : b;
  if (a_is_nan || b_is_nan) return a_is_nan ? a : b;
  return a_wins ? a : b;
}
}  // namespace detail

/// The least value, and where it is: of equal ones, at the least index. A NaN counts as less than
/// all numbers.
template <class T, std::integral Index = std::int32_t>
UserReduction min_location() {
  using Element = Located<T, Index>;
  return reduction_of<Element>([](const Element& a, const Element& b) {
    return detail::pick_located(a, b, a.value < b.value);
  });
}
/// The greatest value, and where it is: of equal ones, at the least index. A NaN counts as greater
/// than all numbers.
template <class T, std::integral Index = std::int32_t>
UserReduction max_location() {
  using Element = Located<T, Index>;
  return reduction_of<Element>([](const Element& a, const Element& b) {
    return detail::pick_located(a, b, a.value > b.value);
  });
}

}  // namespace rondo
