/// \file
/// Calls that move elements without reducing them, from one rank to another or between all; and
/// the forms of calls with chunks of different sizes.
#pragma once

#include <cstddef>
#include <numeric>
#include <ranges>
#include <span>

#include <rondo/call.hpp>
#include <rondo/collectives.hpp>
#include <rondo/types.hpp>
#include <rondo/work.hpp>

namespace rondo {

/// Elements of each rank's chunk, by rank: the same on all ranks. The call copies them.
using ChunkCounts = std::span<const std::size_t>;

/// Builds a rank's calls from typed ranges, for the members of communicators. Throws UsageError if
/// sizes do not fit.
struct ExchangeCalls : Calls {
  template <class In>
  Call send(const In& in, int to, CallOptions options = {}) const {
    Call call = call_of<In>(Collective::send, std::ranges::size(in), options);
    call.in = std::ranges::data(in);
    call.to = to;
    return call;
  }
  template <class Out>
  Call recv(Out& out, int from, CallOptions options = {}) const {
    Call call = call_of<Out>(Collective::recv, std::ranges::size(out), options);
    call.out = std::ranges::data(out);
    call.from = from;
    return call;
  }
  template <class In, class Out>
  Call sendrecv(const In& in, int to, Out& out, int from, CallOptions options = {}) const {
    Call call = call_of<In>(Collective::sendrecv, std::ranges::size(in), options);
    call.in = std::ranges::data(in);
    call.to = to;
    call.out = std::ranges::data(out);
    call.from = from;
    call.received = std::ranges::size(out);
    return call;
  }
  template <class In, class Out>
  Call gather(const In& in, Out& out, int root, CallOptions options = {}) const {
    const std::size_t whole = std::ranges::size(in) * static_cast<std::size_t>(size);
    if (rank == root) require_size("gather", "out", std::ranges::size(out), whole);
    return between(call_of<In>(Collective::gather, whole, options), in, out, root);
  }
  template <class In, class Out>
  Call scatter(const In& in, Out& out, int root, CallOptions options = {}) const {
    const std::size_t whole = std::ranges::size(out) * static_cast<std::size_t>(size);
    if (rank == root) require_size("scatter", "in", std::ranges::size(in), whole);
    return between(call_of<In>(Collective::scatter, whole, options), in, out, root);
  }
  template <class In, class Out>
  Call all_to_all(const In& in, Out& out, CallOptions options = {}) const {
    require_size("all_to_all", "out", std::ranges::size(out), std::ranges::size(in));
    return between(call_of<In>(Collective::all_to_all, std::ranges::size(in), options), in, out, 0);
  }
  template <class In, class Out>
  Call all_gather_v(const In& in, Out& out, ChunkCounts counts, CallOptions options = {}) const {
    const Range own = chunk_with("all_gather_v", "out", std::ranges::size(out), counts);
    require_size("all_gather_v", "in", std::ranges::size(in), own.count);
    Call call = call_of<In>(Collective::all_gather, std::ranges::size(out), options);
    call.counts = counts.data();
    return between(call, in, out, 0);
  }
  template <class In, class Out>
  Call reduce_scatter_v(const In& in, Out& out, ChunkCounts counts, ReduceOp op = ReduceOp::sum,
                        CallOptions options = {}) const {
    const Range own = chunk_with("reduce_scatter_v", "in", std::ranges::size(in), counts);
    require_size("reduce_scatter_v", "out", std::ranges::size(out), own.count);
    Call call = call_of<In>(Collective::reduce_scatter, std::ranges::size(in), options);
    call.counts = counts.data();
    call.op = op;
    return between(call, in, out, 0);
  }

  template <class In, class Out>
  Call gather_v(const In& in, Out& out, ChunkCounts counts, int root,
                CallOptions options = {}) const {
    const Range own = own_chunk("gather_v", counts);
    require_size("gather_v", "in", std::ranges::size(in), own.count);
    if (rank == root) require_size("gather_v", "out", std::ranges::size(out), whole_of(counts));
    Call call = call_of<In>(Collective::gather, whole_of(counts), options);
    call.counts = counts.data();
    return between(call, in, out, root);
  }
  template <class In, class Out>
  Call scatter_v(const In& in, Out& out, ChunkCounts counts, int root,
                 CallOptions options = {}) const {
    const Range own = own_chunk("scatter_v", counts);
    require_size("scatter_v", "out", std::ranges::size(out), own.count);
    if (rank == root) require_size("scatter_v", "in", std::ranges::size(in), whole_of(counts));
    Call call = call_of<Out>(Collective::scatter, whole_of(counts), options);
    call.counts = counts.data();
    return between(call, in, out, root);
  }
  template <class In, class Out>
  Call all_to_all_v(const In& in, ChunkCounts counts, Out& out, ChunkCounts received,
                    CallOptions options = {}) const {
    chunk_with("all_to_all_v", "in", std::ranges::size(in), counts);
    chunk_with("all_to_all_v", "out", std::ranges::size(out), received);
    Call call = call_of<In>(Collective::all_to_all, std::ranges::size(in), options);
    call.counts = counts.data();
    call.received = std::ranges::size(out);
    call.received_counts = received.data();
    return between(call, in, out, 0);
  }

  /// This rank's chunk. Throws UsageError unless there are `size` counts, whose sum is `whole`: the
  /// number of elements of buffer `which` of `call`.
  Range chunk_with(const char* call, const char* which, std::size_t whole,
                   ChunkCounts counts) const {
    require_size(call, "counts", counts.size(), static_cast<std::size_t>(size));
    // Counts whose sum exceeds `whole`, or even wraps, end here: no rank's chunk is computed from
    // them.
    std::size_t left = whole;
    for (const std::size_t count : counts) {
      if (count > left) require_size(call, which, whole, whole - left + count);
      left -= count;
    }
    require_size(call, which, whole, whole - left);
    const auto own = counts.begin() + rank;
    return {std::reduce(counts.begin(), own, std::size_t{0}), *own};
  }
  /// This rank's chunk. Throws UsageError unless there are `size` counts.
  Range own_chunk(const char* call, ChunkCounts counts) const {
    return chunk_with(call, "counts", whole_of(counts), counts);
  }
  static std::size_t whole_of(ChunkCounts counts) {
    return std::reduce(counts.begin(), counts.end(), std::size_t{0});
  }
  template <class R>
  auto own_part(const char* call, R& buffer, ChunkCounts counts) const {
    const Range own = chunk_with(call, "buffer", std::ranges::size(buffer), counts);
    return std::span(std::ranges::data(buffer), std::ranges::size(buffer))
        .subspan(own.offset, own.count);
  }

 private:
  template <class R>
  static Call call_of(Collective collective, std::size_t count, CallOptions options) {
    Call call;
    call.collective = collective;
    call.count = count;
    call.type = kDataTypeOf<detail::ElementOf<R>>;
    call.options = options;
    return call;
  }
  template <class In, class Out>
  static Call between(Call call, const In& in, Out& out, int root) {
    call.in = std::ranges::data(in);
    call.out = std::ranges::data(out);
    call.root = root;
    return call;
  }
};

/// The exchanges of a communicator `Self`. Each builds a Call from its ranges, which `Self` runs or
/// enqueues. `Where`: as in Collectives.
///
/// A message (send, recv, sendrecv) goes between two ranks; the others take no part. Each of the
/// two names the other, and both pass the same type and number of elements: if these differ, the
/// receiver throws MismatchError (on a device, at its next call, check() or wait()). There are no
/// tags: messages from one rank to another arrive in the order in which they were sent. For
/// messages that are independent of these, or that go on beside collectives, make another
/// communicator by duplicate().
///
/// A rank carries out one call at a time, also asynchronous ones. So two ranks that both send a
/// long message first wait for each other until the deadline: use sendrecv. A send returns (on a
/// device, its work ends) when `buffer` may be changed, which may be before the receiver calls
/// recv. A recv without a send ends as TimeoutError. A message that was sent and that nobody has
/// received when the communicator is destroyed is lost without an error.
///
/// gather, scatter, all_to_all and the forms with counts are collectives: all ranks make them.
/// Gather, scatter and all_to_all go along the same edges as messages: a message that was sent
/// before one of these has to be received before it.
template <class Self, class... Where>
class Exchanges {
 public:
  /// `buffer` goes to rank `to`, which calls recv.
  template <ElementRange R>
  void send(R&& buffer, int to, Where... where, CallOptions options = {}) {
    start(calls().send(buffer, to, options), where...);
  }
  /// `buffer` is filled by rank `from`, which calls send with as many elements.
  template <OutputRange R>
  void recv(R&& buffer, int from, Where... where, CallOptions options = {}) {
    start(calls().recv(buffer, from, options), where...);
  }
  /// Both at once: `in` goes to rank `to`, and `out` is filled by rank `from`. Sizes may differ,
  /// and so may the ranks, as where all ranks shift elements round a ring. At the other ends are
  /// calls of sendrecv, send or recv. `to` and `from` may both be this rank. The ranges must not
  /// overlap.
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  void sendrecv(In&& in, int to, Out&& out, int from, Where... where, CallOptions options = {}) {
    start(calls().sendrecv(in, to, out, from, options), where...);
  }

  /// The root gets the elements of all ranks, in rank order: `in` has the same size on all ranks,
  /// `out` size() times that on the root; it may be empty elsewhere. In place on the root: `in` is
  /// its part of `out`.
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  void gather(In&& in, Out&& out, int root, Where... where, CallOptions options = {}) {
    start(calls().gather(in, out, root, options), where...);
  }
  /// Each rank gets its part of the root's elements: `out` has the same size on all ranks, `in`
  /// size() times that on the root; it may be empty elsewhere. In place on the root: `out` is its
  /// part of `in`.
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  void scatter(In&& in, Out&& out, int root, Where... where, CallOptions options = {}) {
    start(calls().scatter(in, out, root, options), where...);
  }
  /// Rank r gets part r of every rank's `in`, and in its `out` they lie in the order of the ranks.
  /// Both have the same size on all ranks, a multiple of size(), and do not overlap.
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  void all_to_all(In&& in, Out&& out, Where... where, CallOptions options = {}) {
    start(calls().all_to_all(in, out, options), where...);
  }

  /// The same three with chunks of different sizes. In gather_v and scatter_v `counts` is the same
  /// on all ranks. In all_to_all_v each rank passes its own: of `in`, `counts` elements go to each
  /// rank, and of `out`, `received` come from each.
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  void gather_v(In&& in, Out&& out, ChunkCounts counts, int root, Where... where,
                CallOptions options = {}) {
    start(calls().gather_v(in, out, counts, root, options), where...);
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  void scatter_v(In&& in, Out&& out, ChunkCounts counts, int root, Where... where,
                 CallOptions options = {}) {
    start(calls().scatter_v(in, out, counts, root, options), where...);
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out> && (sizeof...(Where) == 0)
  void all_to_all_v(In&& in, ChunkCounts counts, Out&& out, ChunkCounts received,
                    CallOptions options = {}) {
    start(calls().all_to_all_v(in, counts, out, received, options));
  }

  /// all_gather with chunks of `counts` elements. With one range: in place.
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  void all_gather_v(In&& in, Out&& out, ChunkCounts counts, Where... where,
                    CallOptions options = {}) {
    start(calls().all_gather_v(in, out, counts, options), where...);
  }
  template <OutputRange R>
  void all_gather_v(R&& buffer, ChunkCounts counts, Where... where, CallOptions options = {}) {
    const auto own = calls().own_part("all_gather_v", buffer, counts);
    start(calls().all_gather_v(own, buffer, counts, options), where...);
  }
  /// reduce_scatter with chunks of `counts` elements: their sum, where no operation is named. With
  /// one range: in place.
  template <OutputRange R>
  void reduce_scatter_v(R&& buffer, ChunkCounts counts, Where... where) {
    reduce_scatter_v(buffer, counts, ReduceOp::sum, where...);
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  void reduce_scatter_v(In&& in, Out&& out, ChunkCounts counts, Where... where) {
    reduce_scatter_v(in, out, counts, ReduceOp::sum, where...);
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  void reduce_scatter_v(In&& in, Out&& out, ChunkCounts counts, ReduceOp op, Where... where,
                        CallOptions options = {}) {
    start(calls().reduce_scatter_v(in, out, counts, op, options), where...);
  }
  template <OutputRange R>
  void reduce_scatter_v(R&& buffer, ChunkCounts counts, ReduceOp op, Where... where,
                        CallOptions options = {}) {
    auto own = calls().own_part("reduce_scatter_v", buffer, counts);
    start(calls().reduce_scatter_v(buffer, own, counts, op, options), where...);
  }

 private:
  friend Self;
  Exchanges() = default;
  ~Exchanges() = default;

  [[nodiscard]] ExchangeCalls calls() const {
    const auto& self = static_cast<const Self&>(*this);
    return {{self.rank(), self.size()}};
  }
  // Runs a call on host memory; enqueues one on a device, `where`: on a stream.
  void start(const Call& call, Where... where) {
    auto& self = static_cast<Self&>(*this);
    if constexpr (sizeof...(Where) == 0) {
      self.run(call);
    } else {
      self.enqueue(call, where...);
    }
  }
};

/// The same exchanges, asynchronous: each returns a handle of its call. `Self` runs the calls in
/// the order in which they were made.
template <class Self>
class AsyncExchanges {
 public:
  template <ElementRange R>
  [[nodiscard]] Work send_async(R&& buffer, int to, CallOptions options = {}) {
    return start(calls().send(buffer, to, options));
  }
  template <OutputRange R>
  [[nodiscard]] Work recv_async(R&& buffer, int from, CallOptions options = {}) {
    return start(calls().recv(buffer, from, options));
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  [[nodiscard]] Work sendrecv_async(In&& in, int to, Out&& out, int from,
                                    CallOptions options = {}) {
    return start(calls().sendrecv(in, to, out, from, options));
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  [[nodiscard]] Work gather_async(In&& in, Out&& out, int root, CallOptions options = {}) {
    return start(calls().gather(in, out, root, options));
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  [[nodiscard]] Work scatter_async(In&& in, Out&& out, int root, CallOptions options = {}) {
    return start(calls().scatter(in, out, root, options));
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  [[nodiscard]] Work all_to_all_async(In&& in, Out&& out, CallOptions options = {}) {
    return start(calls().all_to_all(in, out, options));
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  [[nodiscard]] Work gather_v_async(In&& in, Out&& out, ChunkCounts counts, int root,
                                    CallOptions options = {}) {
    return start(calls().gather_v(in, out, counts, root, options));
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  [[nodiscard]] Work scatter_v_async(In&& in, Out&& out, ChunkCounts counts, int root,
                                     CallOptions options = {}) {
    return start(calls().scatter_v(in, out, counts, root, options));
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  [[nodiscard]] Work all_to_all_v_async(In&& in, ChunkCounts counts, Out&& out,
                                        ChunkCounts received, CallOptions options = {}) {
    return start(calls().all_to_all_v(in, counts, out, received, options));
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  [[nodiscard]] Work all_gather_v_async(In&& in, Out&& out, ChunkCounts counts,
                                        CallOptions options = {}) {
    return start(calls().all_gather_v(in, out, counts, options));
  }
  template <OutputRange R>
  [[nodiscard]] Work all_gather_v_async(R&& buffer, ChunkCounts counts, CallOptions options = {}) {
    const auto own = calls().own_part("all_gather_v", buffer, counts);
    return start(calls().all_gather_v(own, buffer, counts, options));
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  [[nodiscard]] Work reduce_scatter_v_async(In&& in, Out&& out, ChunkCounts counts,
                                            ReduceOp op = ReduceOp::sum, CallOptions options = {}) {
    return start(calls().reduce_scatter_v(in, out, counts, op, options));
  }
  template <OutputRange R>
  [[nodiscard]] Work reduce_scatter_v_async(R&& buffer, ChunkCounts counts,
                                            ReduceOp op = ReduceOp::sum, CallOptions options = {}) {
    auto own = calls().own_part("reduce_scatter_v", buffer, counts);
    return start(calls().reduce_scatter_v(buffer, own, counts, op, options));
  }

 private:
  friend Self;
  AsyncExchanges() = default;
  ~AsyncExchanges() = default;

  [[nodiscard]] ExchangeCalls calls() const {
    const auto& self = static_cast<const Self&>(*this);
    return {{self.rank(), self.size()}};
  }
  Work start(const Call& call) { return static_cast<Self&>(*this).run_async(call); }
};

}  // namespace rondo
