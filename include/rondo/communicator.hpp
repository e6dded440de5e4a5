/// \file
/// The communicator: a group of ranks and the collectives between them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include <rondo/call.hpp>
#include <rondo/collectives.hpp>
#include <rondo/errors.hpp>
#include <rondo/exchanges.hpp>
#include <rondo/export.hpp>
#include <rondo/options.hpp>
#include <rondo/persistent_call.hpp>
#include <rondo/registered_memory.hpp>
#include <rondo/topology.hpp>
#include <rondo/user_reductions.hpp>
#include <rondo/work.hpp>

namespace rondo {

class Communicator;

namespace detail {
struct CommunicatorState;
CommunicatorState& state_of(const Communicator& communicator);
Communicator share(Communicator& communicator, const void* user);
}  // namespace detail

/// One rank's membership in a group. It can be moved, not copied; an object that was moved from may
/// only be destroyed or assigned to. Its calls are members of Collectives and AsyncCollectives
/// (collectives.hpp), Exchanges and AsyncExchanges (exchanges.hpp), and UserReductions
/// (user_reductions.hpp):
///
///     // Or by from_mpi, from_store, from_environment, local_group.
///     rondo::Communicator comm = rondo::from_socket("/tmp/ranks", rank, size);
///     std::vector<float> gradient(1000);
///     comm.all_reduce(gradient, rondo::ReduceOp::avg);
///     rondo::Work work = comm.all_reduce_async(gradient);
///     work.wait();
///
/// Every rank must make the same collectives in the same order, with the same type, count,
/// reduction, root and algorithm. Messages are made by two ranks only (exchanges.hpp). If a rank
/// makes another collective, each rank gets a MismatchError, or a PeerError that quotes it. The
/// call in question throws it; or, on a rank whose part of that call was over before the difference
/// was found, the rank's next call. That may be so in calls with a root: for a rank between two
/// others in the chain of a broadcast or reduce, or one that is not the root of a tree, a gather or
/// a scatter. If such a rank makes no further call, the error is logged when its communicator is
/// destroyed: the destructor waits until all ranks have made its last call, if that had a root. All
/// ranks get bit-identical results, whatever rounding mode or other floating-point state a rank's
/// thread has set: calls have the usual one, and give the thread's back. Every run gives the same
/// bits with the same placement of ranks and the same kind of memory (ordinary or reachable), since
/// the kind of memory decides which algorithm is used; with one exception: of three ranks or more
/// on several hosts, `automatic` chooses by the links that were measured as ranks joined. These are
/// rounded to powers of two, so that runs seldom differ. A named algorithm except `hierarchical`
/// fixes the order, and CommunicatorOptions::rank_order promises more.
///
/// Buffers: any host memory; calls between processes of one host are fastest with memory of
/// reachable_memory() on all ranks. `in` and `out` are either the same buffer (in place) or do not
/// overlap. In place, a rank's own chunk lies at its position in the whole vector:
/// `chunk_range(count, size, rank)`.
///
/// A blocking call runs on the caller's thread if no call is queued, else after the queued calls.
/// Asynchronous calls run on a progress thread in the order of issue. Any thread may call, if the
/// order of calls is the same on all ranks.
///
/// Errors: UsageError is thrown before any data moves. MismatchError, TimeoutError, PeerError and
/// TransportError end the communicator: queued calls and every later call fail as PeerError with
/// the first error's text. Asynchronous calls throw UsageError at once, and TransportError if
/// Rondo's thread for them cannot be started, which ends the communicator; all other errors come in
/// Work::wait(). One UsageError comes later, in the call or in Work::wait(), on all ranks: the call
/// names Algorithm::direct, and the buffers of a rank cannot be reached. Nothing has been written
/// then, and the communicator goes on.
class RONDO_API Communicator : public Collectives<Communicator>,
                               public AsyncCollectives<Communicator>,
                               public Exchanges<Communicator>,
                               public AsyncExchanges<Communicator>,
                               public UserReductions<Communicator> {
 public:
  // With a ReduceOp, or with a UserReduction.
  using AsyncCollectives::all_reduce_async;
  using AsyncCollectives::reduce_async;
  using AsyncCollectives::reduce_scatter_async;
  using AsyncExchanges::reduce_scatter_v_async;
  using Collectives::all_reduce;
  using Collectives::reduce;
  using Collectives::reduce_scatter;
  using Exchanges::reduce_scatter_v;
  using UserReductions::all_reduce;
  using UserReductions::all_reduce_async;
  using UserReductions::reduce;
  using UserReductions::reduce_async;
  using UserReductions::reduce_scatter;
  using UserReductions::reduce_scatter_async;
  using UserReductions::reduce_scatter_v;
  using UserReductions::reduce_scatter_v_async;

  explicit Communicator(std::shared_ptr<detail::CommunicatorState> state);
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  /// Leaves the group, unless reducers that were made with the communicator still exist: then the
  /// last of them leaves it. Finishes the queued calls, each within its deadline. If the last
  /// collective had a root (broadcast, reduce, gather, scatter), waits until all ranks have made
  /// it, for at most that call's timeout; between hosts it does not wait after MPI_Finalize, or on
  /// a thread that may not call MPI. If an exception is unwinding the stack, aborts instead: this
  /// rank will not make the calls that the others wait for.
  ~Communicator();

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  /// Where the ranks are, the ring's order and the carrier of each edge.
  [[nodiscard]] const Topology& topology() const;
  /// The algorithm that `call` would use: `direct` if this rank's buffers can be reached, although
  /// the call itself takes another if those of another rank cannot. Throws UsageError as the call
  /// would.
  [[nodiscard]] Algorithm algorithm_for(const Call& call) const;

  /// Runs one call; see Call.
  void run(const Call& call);
  [[nodiscard]] Work run_async(const Call& call);
  /// Checks and plans a call that is made many times. Copies its counts and its reduction. Throws
  /// UsageError as the call would.
  [[nodiscard]] PersistentCall prepare(const Call& call);
  /// Builds calls of this rank, for run(), run_async() and prepare().
  [[nodiscard]] UserReductionCalls builder() const { return {{{rank(), size()}}}; }

  /// One all_reduce of many buffers, in place: their elements travel together, packed in memory
  /// that other ranks reach, so that many small buffers cost little more than one. All ranks pass
  /// as many buffers, of the same sizes.
  template <std::ranges::input_range Buffers>
    requires OutputRange<std::ranges::range_reference_t<Buffers>>
  void all_reduce_coalesced(Buffers&& buffers, ReduceOp op = ReduceOp::sum,
                            CallOptions options = {}) {
    run_coalesced(parts_of(buffers), type_of<Buffers>(), op, options);
  }
  template <std::ranges::input_range Buffers>
    requires OutputRange<std::ranges::range_reference_t<Buffers>>
  [[nodiscard]] Work all_reduce_coalesced_async(Buffers&& buffers, ReduceOp op = ReduceOp::sum,
                                                CallOptions options = {}) {
    return run_coalesced_async(parts_of(buffers), type_of<Buffers>(), op, options);
  }
  /// The same with buffers as plain values.
  struct Part {
    void* data = nullptr;
    std::size_t count = 0;  ///< elements
  };
  void run_coalesced(std::vector<Part> parts, DataType type, ReduceOp op,
                     const CallOptions& options);
  [[nodiscard]] Work run_coalesced_async(std::vector<Part> parts, DataType type, ReduceOp op,
                                         const CallOptions& options);

  /// Memory for `count` elements, zeroed, that the other processes of this host reach: a
  /// RegisteredMemory of this rank alone. Nothing is collective; any thread may call. Throws as its
  /// constructor does.
  template <Element T>
  [[nodiscard]] static RegisteredMemory<T> allocate(std::size_t count) {
    return RegisteredMemory<T>(count);
  }

  /// A communicator of this rank and of all ranks that pass the same `color`, in the order of their
  /// `key`, and of their ranks here where keys are equal; nothing for a rank that passes no color.
  /// It has the options and the tuning of this one, and no more to do with it: either may be
  /// destroyed or fail first. Collective, and ordered among the other calls; all ranks stay in it
  /// until all groups have joined, each step within this communicator's timeout. Communicators with
  /// edges by MPI may be used by several threads at once with MPI_THREAD_MULTIPLE only.
  /// Throws, on all ranks of a color, UsageError and TransportError (too little memory), and the
  /// errors that any call throws; after TransportError this communicator goes on.
  [[nodiscard]] std::optional<Communicator> split(std::optional<int> color, int key = 0);
  /// Another communicator of the same ranks: split() with one color.
  [[nodiscard]] Communicator duplicate();

  /// Ends the communicator on all ranks: calls in progress and later ones fail as PeerError with
  /// `reason`. Any thread may call; does not block. Ranks of this host see it at once; ranks of
  /// other hosts learn of it from the first rank of this host that is in a call, makes a call or is
  /// destroyed.
  void abort(const std::string& reason);
  /// Whether the communicator has ended, so that each call fails with PeerError: by an error of a
  /// call, or by abort(), on a rank of this host, or on one of another host of which this host has
  /// heard in a call. Any thread may ask; does not block.
  [[nodiscard]] bool ended() const;

 private:
  template <class Buffers>
  static std::vector<Part> parts_of(Buffers& buffers) {
    std::vector<Part> parts;
    for (auto&& buffer : buffers) {
      parts.push_back({std::ranges::data(buffer), std::ranges::size(buffer)});
    }
    return parts;
  }
  template <class Buffers>
  static constexpr DataType type_of() {
    return kDataTypeOf<detail::ElementOf<std::ranges::range_reference_t<Buffers>>>;
  }

  std::optional<Communicator> split_for(detail::PartOf function, std::optional<int> color, int key);
  void leave() noexcept;

  friend detail::CommunicatorState& detail::state_of(const Communicator& communicator);
  friend Communicator detail::share(Communicator& communicator, const void* user);

  std::shared_ptr<detail::CommunicatorState> state_;
  const void* user_ = nullptr;  // null: the program; else the reducer that this object belongs to
};

/// A group of `size` ranks in this process, one for each element of the result; give each to its
/// own thread. Needs no MPI. The ranks share the memory of their links, which is freed with the
/// last rank. Throws UsageError if `size` < 1, if an option or an environment variable has a
/// value that it cannot have, or if the carrier is one between hosts; TransportError if memory is
/// missing.
RONDO_API std::vector<Communicator> local_group(int size, const CommunicatorOptions& options = {});

/// This process as rank `rank` of `size` processes of one host and user that meet at the Unix
/// socket `path`, which rank 0 makes (mode 0600) and removes. Needs neither MPI nor root. Ranks
/// share memory that no process of another user can get. A connection from a process that is not
/// one of the ranks is closed. Throws, on all ranks that have connected: UsageError (ranks that do
/// not fit together), TimeoutError (names the ranks that did not connect within `options.timeout`),
/// TransportError (also if `path` belongs to another user).
RONDO_API Communicator from_socket(const std::string& path, int rank, int size,
                                   const CommunicatorOptions& options = {});

}  // namespace rondo
