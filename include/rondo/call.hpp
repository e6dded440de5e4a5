/// \file
/// One call as plain values, and the typed ranges that calls are made of.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <type_traits>

#include <rondo/options.hpp>
#include <rondo/types.hpp>
#include <rondo/user_reduction.hpp>

namespace rondo {

/// No rank: Call::to and Call::from of calls that do not send, or do not receive.
inline constexpr int kNoRank = -1;

namespace detail {
// The function of the library that makes a call as a part of its own work.
enum class PartOf : std::uint8_t {
  nothing,
  split,
  duplicate,
  allocate,
  all_reduce_coalesced,
  making_reducer,
  iteration,
  write_trace,
  cuda_join,
  cuda_allocate
};
inline constexpr int kPartOfCount = 10;
}  // namespace detail

/// One call without C++ element types: what the typed members of Communicator build.
struct Call {
  Collective collective = Collective::barrier;
  /// What this rank contributes. all_gather and gather: only its own chunk; broadcast and scatter:
  /// read on the root only.
  const void* in = nullptr;
  /// Where the result goes. reduce_scatter and scatter: only the rank's own chunk; reduce and
  /// gather: written on the root only, may be null elsewhere.
  void* out = nullptr;
  /// In collectives, elements of the whole vector: all chunks together. gather, scatter and
  /// all_to_all cut it into equal chunks, unless `counts` says others. In messages, the elements of
  /// the message; in sendrecv, those that are sent.
  std::size_t count = 0;
  DataType type = DataType::f32;
  /// For all_reduce, reduce_scatter and reduce.
  ReduceOp op = ReduceOp::sum;
  /// For broadcast, reduce, gather and scatter.
  int root = 0;
  CallOptions options = {};
  /// The rank to which send and sendrecv send, and that from which recv and sendrecv receive.
  int to = kNoRank;
  int from = kNoRank;
  /// Elements that sendrecv receives; and all_to_all with counts: the sum of `received_counts`.
  std::size_t received = 0;
  /// Elements of each rank's chunk, by rank, in reduce_scatter, all_gather, gather and scatter; in
  /// all_to_all, those that this rank sends to each rank. `count` is their sum. Null: the chunks of
  /// chunk_range. The call copies them.
  const std::size_t* counts = nullptr;
  /// In all_to_all with counts, elements that this rank receives from each rank.
  const std::size_t* received_counts = nullptr;
  /// The reduction, in place of `type` and `op`; an element is then one of this. Null: `op`. An
  /// asynchronous call copies it.
  const UserReduction* reduction = nullptr;
  /// For the library alone, so that errors name the function that the program has called, and ranks
  /// notice that they pass different lists; programs leave them as they are.
  detail::PartOf part_of = detail::PartOf::nothing;
  std::uint32_t checksum = 0;
};

/// Bytes of one element of a call.
inline std::size_t element_bytes(const Call& call) {
  return call.reduction != nullptr ? call.reduction->element_bytes : size_of(call.type);
}

namespace detail {
template <class R>
using ElementOf = std::remove_cvref_t<std::ranges::range_reference_t<R>>;
}  // namespace detail

/// Contiguous elements: a span, vector, array, ... A temporary must be a view such as a span, whose
/// elements outlive it.
template <class R>
concept ElementRange = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
                       std::ranges::borrowed_range<R> && Element<detail::ElementOf<R>>;

/// An ElementRange that can be written.
template <class R>
concept OutputRange =
    ElementRange<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

template <class In, class Out>
concept SameElements =
    std::same_as<detail::ElementOf<In>, detail::ElementOf<Out>>;  ///< of one type

}  // namespace rondo
