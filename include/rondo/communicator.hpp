/// \file
/// The communicator: a group of ranks and the collectives between them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <rondo/call.hpp>
#include <rondo/errors.hpp>
#include <rondo/export.hpp>
#include <rondo/options.hpp>
#include <rondo/topology.hpp>
#include <rondo/types.hpp>
#include <rondo/work.hpp>

namespace rondo {

class Communicator;

namespace detail {
struct CommunicatorState;
CommunicatorState& state_of(Communicator& communicator);
}  // namespace detail

/// One rank's membership in a group. A move-only owner; one that was moved from may only be destroyed
/// or assigned to.
///
/// Every rank makes the same calls in the same order, with the same type, count, reduction, root
/// and algorithm. Where one does not, each rank gets a MismatchError, or a PeerError that quotes it: in
/// that call, or in its next, if its own part of the first was over before the difference was found (a
/// rank between two others in the chain of a broadcast or reduce). A rank that makes no further call is told in
/// the log when its communicator is destroyed: the destructor waits until all ranks have made that broadcast or reduce.
/// All ranks get bit-identical results, and the same bits on every run with the same placement of ranks.
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
  /// Finishes what is queued, each call within its deadline. If the last call was a broadcast or a reduce, waits
  /// until all ranks have made it, for at most its timeout; between hosts, not after MPI_Finalize, nor on a thread
  /// that may not call MPI. While an exception unwinds the stack, aborts instead: this rank will not make the calls
  /// that the others wait for.
  ~Communicator();

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  /// Where the ranks are, the ring's order and the carrier of each edge.
  [[nodiscard]] const Topology& topology() const;
  /// The algorithm that `call` would use. Throws UsageError as the call would.
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
    run(calls().all_reduce(buffer, buffer, op, options));
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  void all_reduce(In&& in, Out&& out, ReduceOp op = ReduceOp::sum, CallOptions options = {}) {
    run(calls().all_reduce(in, out, op, options));
  }
  template <OutputRange R>
  [[nodiscard]] Work all_reduce_async(R&& buffer, ReduceOp op = ReduceOp::sum,
                                      CallOptions options = {}) {
    return run_async(calls().all_reduce(buffer, buffer, op, options));
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  [[nodiscard]] Work all_reduce_async(In&& in, Out&& out, ReduceOp op = ReduceOp::sum,
                                      CallOptions options = {}) {
    return run_async(calls().all_reduce(in, out, op, options));
  }

  /// Rank r gets chunk r of the reduction: `in` is the whole vector, `out` one chunk of it, of
  /// `chunk_range(in.size(), size(), r).count` elements.
  template <OutputRange R>
  void reduce_scatter(R&& buffer, ReduceOp op = ReduceOp::sum, CallOptions options = {}) {
    run(calls().reduce_scatter(buffer, calls().own_chunk(buffer), op, options));
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  void reduce_scatter(In&& in, Out&& out, ReduceOp op = ReduceOp::sum, CallOptions options = {}) {
    run(calls().reduce_scatter(in, out, op, options));
  }
  template <OutputRange R>
  [[nodiscard]] Work reduce_scatter_async(R&& buffer, ReduceOp op = ReduceOp::sum,
                                          CallOptions options = {}) {
    return run_async(calls().reduce_scatter(buffer, calls().own_chunk(buffer), op, options));
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  [[nodiscard]] Work reduce_scatter_async(In&& in, Out&& out, ReduceOp op = ReduceOp::sum,
                                          CallOptions options = {}) {
    return run_async(calls().reduce_scatter(in, out, op, options));
  }

  /// All ranks get all chunks: `in` is this rank's chunk, `out` the whole vector.
  template <OutputRange R>
  void all_gather(R&& buffer, CallOptions options = {}) {
    run(calls().all_gather(calls().own_chunk(buffer), buffer, options));
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  void all_gather(In&& in, Out&& out, CallOptions options = {}) {
    run(calls().all_gather(in, out, options));
  }
  template <OutputRange R>
  [[nodiscard]] Work all_gather_async(R&& buffer, CallOptions options = {}) {
    return run_async(calls().all_gather(calls().own_chunk(buffer), buffer, options));
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  [[nodiscard]] Work all_gather_async(In&& in, Out&& out, CallOptions options = {}) {
    return run_async(calls().all_gather(in, out, options));
  }

  /// All ranks get the root's elements. No rank leaves before the ranks that it hears of have entered: the root
  /// waits for the last rank of the ring to enter.
  template <OutputRange R>
  void broadcast(R&& buffer, int root, CallOptions options = {}) {
    run(calls().broadcast(buffer, buffer, root, options));
  }
  template <OutputRange R>
  [[nodiscard]] Work broadcast_async(R&& buffer, int root, CallOptions options = {}) {
    return run_async(calls().broadcast(buffer, buffer, root, options));
  }

  /// The same into another buffer; `in` is read on the root only and may be empty elsewhere.
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  void broadcast(In&& in, Out&& out, int root, CallOptions options = {}) {
    run(calls().broadcast(in, out, root, options));
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  [[nodiscard]] Work broadcast_async(In&& in, Out&& out, int root, CallOptions options = {}) {
    return run_async(calls().broadcast(in, out, root, options));
  }

  /// The root gets the reduction over all ranks; the first rank of the ring's chain waits for the root to
  /// enter. `out` is not touched elsewhere and may be empty
  /// there. The form with one buffer changes the root's only.
  template <OutputRange R>
  void reduce(R&& buffer, int root, ReduceOp op = ReduceOp::sum, CallOptions options = {}) {
    run(calls().reduce(buffer, buffer, root, op, options));
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  void reduce(In&& in, Out&& out, int root, ReduceOp op = ReduceOp::sum, CallOptions options = {}) {
    run(calls().reduce(in, out, root, op, options));
  }
  template <OutputRange R>
  [[nodiscard]] Work reduce_async(R&& buffer, int root, ReduceOp op = ReduceOp::sum,
                                  CallOptions options = {}) {
    return run_async(calls().reduce(buffer, buffer, root, op, options));
  }
  template <ElementRange In, OutputRange Out>
    requires SameElements<In, Out>
  [[nodiscard]] Work reduce_async(In&& in, Out&& out, int root, ReduceOp op = ReduceOp::sum,
                                  CallOptions options = {}) {
    return run_async(calls().reduce(in, out, root, op, options));
  }

  /// No rank leaves before all have entered.
  void barrier(CallOptions options = {}) { run(calls().barrier(options)); }
  [[nodiscard]] Work barrier_async(CallOptions options = {}) {
    return run_async(calls().barrier(options));
  }

 private:
  friend detail::CommunicatorState& detail::state_of(Communicator& communicator);

  [[nodiscard]] Calls calls() const { return {rank(), size()}; }

  std::unique_ptr<detail::CommunicatorState> state_;
};

/// A group of `size` ranks in this process, one for each element of the result; hand each to a
/// thread of its own. Needs no MPI. Memory for the links is shared between them and freed with the
/// last. Throws UsageError when `size` < 1 or an option is out of range.
RONDO_API std::vector<Communicator> local_group(int size, const CommunicatorOptions& options = {});

/// This process as rank `rank` of `size` processes of one host and user that meet at the Unix socket `path`,
/// which rank 0 makes (mode 0600) and removes. Needs neither MPI nor root. Ranks are joined by shared memory
/// that no other user's process gets. Whoever connects without being a rank is sent away. Throws, on all ranks
/// that have come, UsageError (ranks that do not fit together), TimeoutError (names the ranks that did not come
/// within `options.timeout`), TransportError (also where `path` is another user's).
RONDO_API Communicator from_socket(const std::string& path, int rank, int size,
                                   const CommunicatorOptions& options = {});

}  // namespace rondo
