/// \file
/// The collectives, written once for communicators over host memory and over devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>

#include <rondo/call.hpp>
#include <rondo/chunk.hpp>
#include <rondo/export.hpp>
#include <rondo/types.hpp>
#include <rondo/work.hpp>

namespace rondo {

/// Builds a rank's calls from typed ranges, for the members of communicators. Throws UsageError if
/// sizes do not fit.
struct Calls {
  int rank = 0;
  int size = 1;

  template <class In, class Out>
  Call all_reduce(In& in, Out& out, ReduceOp op = ReduceOp::sum, CallOptions options = {}) const {
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
  Call reduce_scatter(const In& in, Out&& out, ReduceOp op = ReduceOp::sum,
                      CallOptions options = {}) const {
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
  Call all_gather(const In& in, Out& out, CallOptions options = {}) const {
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
  Call broadcast(In& in, Out& out, int root, CallOptions options = {}) const {
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
  Call reduce(In& in, Out& out, int root, ReduceOp op = ReduceOp::sum,
              CallOptions options = {}) const {
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
  static Call barrier(CallOptions options = {}) {
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
  /// Throws UsageError unless buffer `which` of `call` has the `expected` number of elements.
  RONDO_API void require_size(const char* call, const char* which, std::size_t actual,
                              std::size_t expected) const;
};

/// The collectives of a communicator `Self`. Each builds a Call from its ranges, which `Self` runs
/// or enqueues. `Where`: the further arguments of a call: none for host memory; a stream for a
/// device, whose ranges are of device memory. Ranges are spans, vectors, arrays; a member that
/// takes one range works in place. In host memory, all_reduce, broadcast and reduce also take one
/// element, such as a loss; the asynchronous forms do not.
template <class Self, class... Where>
class Collectives {
 public:
  /// Every element becomes the reduction of that element over all ranks: their sum, where no
  /// operation is named.
  template <OutputRange R>
  void all_reduce(R&& buffer, Where... where) {
    all_reduce(buffer, ReduceOp::sum, where...);
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  void all_reduce(In&& in, Out&& out, Where... where) {
    all_reduce(in, out, ReduceOp::sum, where...);
  }
  template <OutputRange R>
  void all_reduce(R&& buffer, ReduceOp op, Where... where, CallOptions options = {}) {
    start(calls().all_reduce(buffer, buffer, op, options), where...);
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  void all_reduce(In&& in, Out&& out, ReduceOp op, Where... where, CallOptions options = {}) {
    start(calls().all_reduce(in, out, op, options), where...);
  }
  template <Element T>
    requires(sizeof...(Where) == 0)
  void all_reduce(T& element, ReduceOp op = ReduceOp::sum, CallOptions options = {}) {
    all_reduce(std::span(&element, 1), op, options);
  }

  /// Rank r gets chunk r of the reduction: `in` is the whole vector, `out` one chunk of it, of
  /// `chunk_range(in.size(), size(), r).count` elements.
  template <OutputRange R>
  void reduce_scatter(R&& buffer, Where... where) {
    reduce_scatter(buffer, ReduceOp::sum, where...);
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  void reduce_scatter(In&& in, Out&& out, Where... where) {
    reduce_scatter(in, out, ReduceOp::sum, where...);
  }
  template <OutputRange R>
  void reduce_scatter(R&& buffer, ReduceOp op, Where... where, CallOptions options = {}) {
    start(calls().reduce_scatter(buffer, calls().own_chunk(buffer), op, options), where...);
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  void reduce_scatter(In&& in, Out&& out, ReduceOp op, Where... where, CallOptions options = {}) {
    start(calls().reduce_scatter(in, out, op, options), where...);
  }

  /// All ranks get all chunks: `in` is this rank's chunk, `out` the whole vector.
  template <OutputRange R>
  void all_gather(R&& buffer, Where... where, CallOptions options = {}) {
    start(calls().all_gather(calls().own_chunk(buffer), buffer, options), where...);
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  void all_gather(In&& in, Out&& out, Where... where, CallOptions options = {}) {
    start(calls().all_gather(in, out, options), where...);
  }

  /// All ranks get the root's elements. No rank returns before the ranks from which it receives
  /// something, directly or through others, have entered: the root waits for the last rank of the
  /// ring to enter. With two ranges, `in` is read on the root only and may be empty elsewhere.
  template <OutputRange R>
  void broadcast(R&& buffer, int root, Where... where, CallOptions options = {}) {
    start(calls().broadcast(buffer, buffer, root, options), where...);
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  void broadcast(In&& in, Out&& out, int root, Where... where, CallOptions options = {}) {
    start(calls().broadcast(in, out, root, options), where...);
  }
  template <Element T>
    requires(sizeof...(Where) == 0)
  void broadcast(T& element, int root, CallOptions options = {}) {
    broadcast(std::span(&element, 1), root, options);
  }

  /// The root gets the reduction over all ranks; the first rank of the ring's chain waits for the
  /// root to enter. `out` is not touched on other ranks and may be empty there. The form with one
  /// range changes only the root's buffer.
  template <OutputRange R>
  void reduce(R&& buffer, int root, Where... where) {
    reduce(buffer, root, ReduceOp::sum, where...);
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  void reduce(In&& in, Out&& out, int root, Where... where) {
    reduce(in, out, root, ReduceOp::sum, where...);
  }
  template <OutputRange R>
  void reduce(R&& buffer, int root, ReduceOp op, Where... where, CallOptions options = {}) {
    start(calls().reduce(buffer, buffer, root, op, options), where...);
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  void reduce(In&& in, Out&& out, int root, ReduceOp op, Where... where, CallOptions options = {}) {
    start(calls().reduce(in, out, root, op, options), where...);
  }
  template <Element T>
    requires(sizeof...(Where) == 0)
  void reduce(T& element, int root, ReduceOp op = ReduceOp::sum, CallOptions options = {}) {
    reduce(std::span(&element, 1), root, op, options);
  }

  /// No rank leaves before all have entered.
  void barrier(Where... where, CallOptions options = {}) {
    start(Calls::barrier(options), where...);
  }

 private:
  friend Self;
  Collectives() = default;
  ~Collectives() = default;

  [[nodiscard]] Calls calls() const {
    const auto& self = static_cast<const Self&>(*this);
    return {self.rank(), self.size()};
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

/// The same collectives, asynchronous: each returns a handle of its call. `Self` runs the calls in
/// the order in which they were made.
template <class Self>
class AsyncCollectives {
 public:
  template <OutputRange R>
  [[nodiscard]] Work all_reduce_async(R&& buffer, ReduceOp op = ReduceOp::sum,
                                      CallOptions options = {}) {
    return start(calls().all_reduce(buffer, buffer, op, options));
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  [[nodiscard]] Work all_reduce_async(In&& in, Out&& out, ReduceOp op = ReduceOp::sum,
                                      CallOptions options = {}) {
    return start(calls().all_reduce(in, out, op, options));
  }
  template <OutputRange R>
  [[nodiscard]] Work reduce_scatter_async(R&& buffer, ReduceOp op = ReduceOp::sum,
                                          CallOptions options = {}) {
    return start(calls().reduce_scatter(buffer, calls().own_chunk(buffer), op, options));
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  [[nodiscard]] Work reduce_scatter_async(In&& in, Out&& out, ReduceOp op = ReduceOp::sum,
                                          CallOptions options = {}) {
    return start(calls().reduce_scatter(in, out, op, options));
  }
  template <OutputRange R>
  [[nodiscard]] Work all_gather_async(R&& buffer, CallOptions options = {}) {
    return start(calls().all_gather(calls().own_chunk(buffer), buffer, options));
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  [[nodiscard]] Work all_gather_async(In&& in, Out&& out, CallOptions options = {}) {
    return start(calls().all_gather(in, out, options));
  }
  template <OutputRange R>
  [[nodiscard]] Work broadcast_async(R&& buffer, int root, CallOptions options = {}) {
    return start(calls().broadcast(buffer, buffer, root, options));
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  [[nodiscard]] Work broadcast_async(In&& in, Out&& out, int root, CallOptions options = {}) {
    return start(calls().broadcast(in, out, root, options));
  }
  template <OutputRange R>
  [[nodiscard]] Work reduce_async(R&& buffer, int root, ReduceOp op = ReduceOp::sum,
                                  CallOptions options = {}) {
    return start(calls().reduce(buffer, buffer, root, op, options));
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  [[nodiscard]] Work reduce_async(In&& in, Out&& out, int root, ReduceOp op = ReduceOp::sum,
                                  CallOptions options = {}) {
    return start(calls().reduce(in, out, root, op, options));
  }
  [[nodiscard]] Work barrier_async(CallOptions options = {}) {
    return start(Calls::barrier(options));
  }

 private:
  friend Self;
  AsyncCollectives() = default;
  ~AsyncCollectives() = default;

  [[nodiscard]] Calls calls() const {
    const auto& self = static_cast<const Self&>(*this);
    return {self.rank(), self.size()};
  }
  Work start(const Call& call) { return static_cast<Self&>(*this).run_async(call); }
};

}  // namespace rondo
