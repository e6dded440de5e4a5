/// \file
/// The communicator: a group of ranks and the collectives between them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <rondo/chunk.hpp>
#include <rondo/errors.hpp>
#include <rondo/export.hpp>
#include <rondo/options.hpp>
#include <rondo/topology.hpp>
#include <rondo/types.hpp>
#include <rondo/work.hpp>

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
struct CommunicatorState;

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

/// One rank's membership in a group. A move-only owner; one that was moved from may only be destroyed
/// or assigned to.
///
/// Every rank makes the same calls in the same order, with the same type, count, reduction, root
/// and algorithm; a rank that does not is found by its peers, and the call ends as a MismatchError,
/// or as a TimeoutError where the two calls exchange nothing. All ranks get bit-identical results,
/// and the same bits on every run with the same placement of ranks.
///
/// Buffers: host memory. `in` and `out` are either the same buffer (in place) or do not overlap. In
/// place, a rank's own chunk is where it lies in the whole vector: `chunk_range(count, size,
/// rank)`. The forms with one buffer are in place.
///
/// Blocking calls run on the caller's thread when nothing is queued, else after what is queued.
/// Asynchronous calls run on a progress thread in the order of issue. Any thread may call, as long
/// as the order of calls is the same on all ranks.
///
/// Errors: UsageError before anything moves; MismatchError, TimeoutError, PeerError and
/// TransportError end the communicator: what is queued and every later call fail as PeerError with
/// the first error's text. Asynchronous calls throw UsageError at once, the others in Work::wait().
class RONDO_API Communicator {
 public:
  explicit Communicator(std::unique_ptr<detail::CommunicatorState> state);
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  /// Finishes what is queued, each call within its deadline. While an exception unwinds the stack, aborts
  /// instead: this rank will not make the calls that the others wait for.
  ~Communicator();

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  /// Where the ranks are, the ring's order and the carrier of each edge.
  [[nodiscard]] const Topology& topology() const;
  /// The algorithm that `call` would use.
  [[nodiscard]] Algorithm algorithm_for(const Call& call) const;

  /// Runs one collective; see Call.
  void run(const Call& call);
  [[nodiscard]] Work run_async(const Call& call);

  /// Ends the communicator on all ranks: calls in progress and later ones fail as PeerError with
  /// `reason`. Any thread may call; does not block. Ranks of this host see it at once; those of other
  /// hosts are told by the first rank of this host that is in a call, makes one, or is destroyed.
  void abort(const std::string& reason);

  /// Every element becomes the reduction of that element over all ranks.
  template <OutputRange R>
  void all_reduce(R&& buffer, ReduceOp op = ReduceOp::sum, CallOptions options = {}) {
    run(all_reduce_call(buffer, buffer, op, options));
  }
  template <ElementRange In, OutputRange Out>
  requires SameElements<In, Out>
  void all_reduce(In&& in, Out&& out, ReduceOp op = ReduceOp::sum, CallOptions options = {}) {
    run(all_reduce_call(in, out, op, options));
  }
  template <OutputRange R>
  [[nodiscard]] Work all_reduce_async(R&& buffer, ReduceOp op = ReduceOp::sum,
                                      CallOptions options = {}) {
    return run_async(all_reduce_call(buffer, buffer, op, options));
  }
  template <ElementRange In, OutputRange Out>
  requires SameElements<In, Out>
  [[nodiscard]] Work all_reduce_async(In&& in, Out&& out, ReduceOp op = ReduceOp::sum,
                                      CallOptions options = {}) {
    return run_async(all_reduce_call(in, out, op, options));
  }

  /// Rank r gets chunk r of the reduction: `in` is the whole vector, `out` one chunk of it, of
  /// `chunk_range(in.size(), size(), r).count` elements.
  template <OutputRange R>
  void reduce_scatter(R&& buffer, ReduceOp op = ReduceOp::sum, CallOptions options = {}) {
    run(reduce_scatter_call(buffer, own_chunk(buffer), op, options));
  }
  template <ElementRange In, OutputRange Out>
  requires SameElements<In, Out>
  void reduce_scatter(In&& in, Out&& out, ReduceOp op = ReduceOp::sum, CallOptions options = {}) {
    run(reduce_scatter_call(in, out, op, options));
  }
  template <OutputRange R>
  [[nodiscard]] Work reduce_scatter_async(R&& buffer, ReduceOp op = ReduceOp::sum,
                                          CallOptions options = {}) {
    return run_async(reduce_scatter_call(buffer, own_chunk(buffer), op, options));
  }
  template <ElementRange In, OutputRange Out>
  requires SameElements<In, Out>
  [[nodiscard]] Work reduce_scatter_async(In&& in, Out&& out, ReduceOp op = ReduceOp::sum,
                                          CallOptions options = {}) {
    return run_async(reduce_scatter_call(in, out, op, options));
  }

  /// All ranks get all chunks: `in` is this rank's chunk, `out` the whole vector.
  template <OutputRange R>
  void all_gather(R&& buffer, CallOptions options = {}) {
    run(all_gather_call(own_chunk(buffer), buffer, options));
  }
  template <ElementRange In, OutputRange Out>
  requires SameElements<In, Out>
  void all_gather(In&& in, Out&& out, CallOptions options = {}) {
    run(all_gather_call(in, out, options));
  }
  template <OutputRange R>
  [[nodiscard]] Work all_gather_async(R&& buffer, CallOptions options = {}) {
    return run_async(all_gather_call(own_chunk(buffer), buffer, options));
  }
  template <ElementRange In, OutputRange Out>
  requires SameElements<In, Out>
  [[nodiscard]] Work all_gather_async(In&& in, Out&& out, CallOptions options = {}) {
    return run_async(all_gather_call(in, out, options));
  }

  /// All ranks get the root's elements.
  template <OutputRange R>
  void broadcast(R&& buffer, int root, CallOptions options = {}) {
    run(broadcast_call(buffer, buffer, root, options));
  }
  template <OutputRange R>
  [[nodiscard]] Work broadcast_async(R&& buffer, int root, CallOptions options = {}) {
    return run_async(broadcast_call(buffer, buffer, root, options));
  }

  /// The same into another buffer; `in` is read on the root only and may be empty elsewhere.
  template <ElementRange In, OutputRange Out>
  requires SameElements<In, Out>
  void broadcast(In&& in, Out&& out, int root, CallOptions options = {}) {
    run(broadcast_call(in, out, root, options));
  }
  template <ElementRange In, OutputRange Out>
  requires SameElements<In, Out>
  [[nodiscard]] Work broadcast_async(In&& in, Out&& out, int root, CallOptions options = {}) {
    return run_async(broadcast_call(in, out, root, options));
  }

  /// The root gets the reduction over all ranks; `out` is not touched elsewhere and may be empty
  /// there. The form with one buffer changes the root's only.
  template <OutputRange R>
  void reduce(R&& buffer, int root, ReduceOp op = ReduceOp::sum, CallOptions options = {}) {
    run(reduce_call(buffer, buffer, root, op, options));
  }
  template <ElementRange In, OutputRange Out>
  requires SameElements<In, Out>
  void reduce(In&& in, Out&& out, int root, ReduceOp op = ReduceOp::sum, CallOptions options = {}) {
    run(reduce_call(in, out, root, op, options));
  }
  template <OutputRange R>
  [[nodiscard]] Work reduce_async(R&& buffer, int root, ReduceOp op = ReduceOp::sum,
                                  CallOptions options = {}) {
    return run_async(reduce_call(buffer, buffer, root, op, options));
  }
  template <ElementRange In, OutputRange Out>
  requires SameElements<In, Out>
  [[nodiscard]] Work reduce_async(In&& in, Out&& out, int root, ReduceOp op = ReduceOp::sum,
                                  CallOptions options = {}) {
    return run_async(reduce_call(in, out, root, op, options));
  }

  /// No rank leaves before all have entered.
  void barrier(CallOptions options = {}) { run(barrier_call(options)); }
  [[nodiscard]] Work barrier_async(CallOptions options = {}) {
    return run_async(barrier_call(options));
  }

 private:
  template <class In, class Out>
  Call all_reduce_call(In& in, Out& out, ReduceOp op, CallOptions options) const {
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
  Call reduce_scatter_call(const In& in, Out&& out, ReduceOp op, CallOptions options) const {
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
  Call all_gather_call(const In& in, Out& out, CallOptions options) const {
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
  Call broadcast_call(In& in, Out& out, int root, CallOptions options) const {
    if (rank() == root) {
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
  Call reduce_call(In& in, Out& out, int root, ReduceOp op, CallOptions options) const {
    if (rank() == root) {
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
  static Call barrier_call(CallOptions options) {
    Call call;
    call.options = options;
    return call;
  }

  [[nodiscard]] Range chunk_of(std::size_t count) const {
    return chunk_range(count, static_cast<std::uint64_t>(size()),
                       static_cast<std::uint64_t>(rank()));
  }
  template <class R>
  auto own_chunk(R& buffer) const {
    const Range chunk = chunk_of(std::ranges::size(buffer));
    return std::span(std::ranges::data(buffer), std::ranges::size(buffer))
        .subspan(chunk.offset, chunk.count);
  }
  /// Throws UsageError unless `actual` elements is what `which` buffer of `call` must have.
  void require_size(const char* call, const char* which, std::size_t actual,
                    std::size_t expected) const;

  std::unique_ptr<detail::CommunicatorState> state_;
};

/// A group of `size` ranks in this process, one for each element of the result; hand each to a
/// thread of its own. Needs no MPI. Memory for the links is shared between them and freed with the
/// last. Throws UsageError when `size` < 1 or an option is out of range.
RONDO_API std::vector<Communicator> local_group(int size, const CommunicatorOptions& options = {});

}  // namespace rondo
