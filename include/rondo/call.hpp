/// \file
/// One collective as plain values, and the typed ranges that calls are made of.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <type_traits>

#include <rondo/options.hpp>
#include <rondo/types.hpp>

namespace rondo {

/// One collective without C++ element types: what the typed members of Communicator build.
struct Call {
  Collective collective = Collective::barrier;
  /// What this rank contributes. all_gather: only its own chunk; broadcast: read on the root only.
  const void* in = nullptr;
  /// Where the result goes. reduce_scatter: only the rank's own chunk; reduce: written on the root
  /// only, may be null elsewhere.
  void* out = nullptr;
  /// Elements of the whole vector: all chunks together in reduce_scatter and all_gather.
  std::size_t count = 0;
  DataType type = DataType::f32;
  /// Ignored by all_gather, broadcast and barrier.
  ReduceOp op = ReduceOp::sum;
  /// For broadcast and reduce.
  int root = 0;
  CallOptions options = {};
};

namespace detail {
template <class R>
using ElementOf = std::remove_cvref_t<std::ranges::range_reference_t<R>>;
}  // namespace detail

/// Contiguous elements: a span, vector, array, ... A temporary must be a view such as a span, whose elements outlive
/// it.
template <class R>
concept ElementRange = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
                       std::ranges::borrowed_range<R> && Element<detail::ElementOf<R>>;

/// An ElementRange that can be written.
template <class R>
concept OutputRange =
    ElementRange<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

template <class In, class Out>
concept SameElements = std::same_as<detail::ElementOf<In>, detail::ElementOf<Out>>;

}  // namespace rondo
