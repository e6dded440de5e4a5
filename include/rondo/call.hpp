/// \file
/// One collective as plain values, and the typed ranges that calls are made of.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <type_traits>

#include <rondo/chunk.hpp>
#include <rondo/export.hpp>
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

/// A span, vector, array, ... of elements that outlives the expression that names it.
template <class R>
concept ElementRange = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
                       std::ranges::borrowed_range<R> && Element<detail::ElementOf<R>>;

/// An ElementRange that can be written.
template <class R>
concept OutputRange =
    ElementRange<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

template <class In, class Out>
concept SameElements = std::same_as<detail::ElementOf<In>, detail::ElementOf<Out>>;

/// Makes a rank's calls from typed ranges: what the members of communicators are written with. Throws
/// UsageError where sizes do not fit.
struct Calls {
  int rank = 0;
  int size = 1;

  template <class In, class Out>
  Call all_reduce(In& in, Out& out, ReduceOp op, CallOptions options) const {
    require_size("all_reduce", "out", std::ranges::size(out), std::ranges::size(in));
    return {Collective::all_reduce,
            std::ranges::data(in),
            std::ranges::data(out),
            std::ranges::size(in),
            kDataTypeOf<detail::ElementOf<In>>,
            op,
            0,
            options};
  }
  template <class In, class Out>
  Call reduce_scatter(const In& in, Out&& out, ReduceOp op, CallOptions options) const {
    require_size("reduce_scatter", "out", std::ranges::size(out),
                 chunk_of(std::ranges::size(in)).count);
    return {Collective::reduce_scatter,
            std::ranges::data(in),
            std::ranges::data(out),
            std::ranges::size(in),
            kDataTypeOf<detail::ElementOf<In>>,
            op,
            0,
            options};
  }
  template <class In, class Out>
  Call all_gather(const In& in, Out& out, CallOptions options) const {
    require_size("all_gather", "in", std::ranges::size(in), chunk_of(std::ranges::size(out)).count);
    return {Collective::all_gather,
            std::ranges::data(in),
            std::ranges::data(out),
            std::ranges::size(out),
            kDataTypeOf<detail::ElementOf<Out>>,
            ReduceOp::sum,
            0,
            options};
  }
  template <class In, class Out>
  Call broadcast(In& in, Out& out, int root, CallOptions options) const {
    if (rank == root) {
      require_size("broadcast", "in", std::ranges::size(in), std::ranges::size(out));
    }
    return {Collective::broadcast,
            std::ranges::data(in),
            std::ranges::data(out),
            std::ranges::size(out),
            kDataTypeOf<detail::ElementOf<In>>,
            ReduceOp::sum,
            root,
            options};
  }
  template <class In, class Out>
  Call reduce(In& in, Out& out, int root, ReduceOp op, CallOptions options) const {
    if (rank == root) {
      require_size("reduce", "out", std::ranges::size(out), std::ranges::size(in));
    }
    return {Collective::reduce,
            std::ranges::data(in),
            std::ranges::data(out),
            std::ranges::size(in),
            kDataTypeOf<detail::ElementOf<In>>,
            op,
            root,
            options};
  }
  static Call barrier(CallOptions options) {
    Call call;
    call.options = options;
    return call;
  }

  [[nodiscard]] Range chunk_of(std::size_t count) const {
    return chunk_range(count, static_cast<std::uint64_t>(size), static_cast<std::uint64_t>(rank));
  }
  template <class R>
  auto own_chunk(R& buffer) const {
    const Range chunk = chunk_of(std::ranges::size(buffer));
    return std::span(std::ranges::data(buffer), std::ranges::size(buffer))
        .subspan(chunk.offset, chunk.count);
  }
  /// Throws UsageError unless `actual` elements is what `which` buffer of `call` must have.
  RONDO_API void require_size(const char* call, const char* which, std::size_t actual,
                              std::size_t expected) const;
};

}  // namespace rondo
