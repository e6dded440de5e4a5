/// \file
/// Communicators over the memory of CUDA devices. Needs no CUDA header: cudaStream_t is a
/// `CUstream_st*`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rondo/call.hpp>
#include <rondo/collectives.hpp>
#include <rondo/communicator.hpp>
#include <rondo/cuda_registered_memory.hpp>
#include <rondo/errors.hpp>
#include <rondo/exchanges.hpp>
#include <rondo/export.hpp>
#include <rondo/options.hpp>
#include <rondo/topology.hpp>

struct CUstream_st;

namespace rondo::cuda {

/// What CUDA calls cudaStream_t.
using Stream = CUstream_st*;

/// Whether devices read and write each other's memory.
/// - `automatic`: where they can, and a test pattern has shown at the start that the data arrives;
///   else through pinned host memory. Communicator::topology() says which and why for the edges of
///   `ring` and `naive`, the log also for those of messages.
/// - `required`: everywhere; if an edge would need a fallback, an error says why.
/// - `avoided`: nowhere; pinned host memory on every edge.
enum class PeerAccess : std::uint8_t { automatic, required, avoided };

/// For Options::device.
inline constexpr int kCurrentDevice = -1;
/// The i-th rank of a host takes device i modulo the number of devices.
inline constexpr int kSpreadOverDevices = -2;

/// The same on every rank, except `device`.
struct Options {
  int device = kCurrentDevice;
  PeerAccess peer_access = PeerAccess::automatic;
  /// Independent rings side by side, each a thread block on every rank, at most 256; 0: chosen. All
  /// blocks of all ranks that share a device must fit on it at once, which is checked. Each rank
  /// counts as at least two blocks, since a sendrecv has one to send and one to receive.
  int channels = 0;
  /// Threads of a block, a multiple of 32 up to 512; 0: chosen.
  int threads = 0;
  /// Payload of one FIFO slot, a multiple of 64; 0: chosen.
  std::size_t slot_bytes = 0;
  /// Slots of one FIFO, at least 2; 0: chosen.
  std::uint32_t slots = 0;
  /// `automatic` uses one_shot for calls of up to this many bytes, if every rank reaches the memory
  /// of every other; unset: chosen (256 KiB where all ranks share one device, else 64 KiB). At most
  /// 1 MiB.
  std::optional<std::size_t> one_shot_bytes = std::nullopt;
};

class Communicator;
struct State;

}  // namespace rondo::cuda

namespace rondo::detail {
class ExclusiveUse;
namespace gpu {
cuda::Communicator share(cuda::Communicator& communicator, const void* user);
ExclusiveUse& exclusive_use_of(cuda::Communicator& communicator);
}  // namespace gpu
}  // namespace rondo::detail

namespace rondo::cuda {

/// One rank's membership in a group whose buffers are device memory. It can be moved, not copied;
/// an object that was moved from may only be destroyed or assigned to.
///
/// The calls are those of rondo::Communicator, on memory that the rank's device can reach, and
/// ordered by a stream: a call is enqueued and returns. It starts when the work that was enqueued
/// on the stream before it has ended, and work that is enqueued after it waits for it. Nothing is
/// allocated (except by `naive` reduce_scatter and reduce to a rank other than 0), and a call can
/// be captured in a CUDA graph and replayed; every rank must then replay the same. Buffers are
/// aligned to their elements.
///
/// Every rank makes the same collectives in the same order; a message is made, and replayed, by its
/// two ranks. Calls on different streams of one rank run in the order in which they were made.
/// Captured calls are ordered only by their graphs, whose replays must have ended before the
/// communicator is destroyed. A call returns at once while fewer than 40 calls of this rank are
/// unfinished. With more it may wait for the oldest of them, so that no launch queue of CUDA fills
/// up. One thread may drive many ranks, if it makes a call on each of them before it makes 40 more
/// on any of them. The caller must limit the number of unfinished graph replays.
///
/// Several ranks may share one device. Each then needs a stream of its own, made with
/// cudaStreamNonBlocking: on the default stream, one rank's call would be queued behind another
/// rank's call, which waits for it. Nothing that the program does on the device may wait for one
/// rank's call before the calls of the other ranks are enqueued: cudaDeviceSynchronize, cudaFree
/// and cudaHostUnregister wait for the calls of all ranks of the process. So may the first launch
/// of a kernel that CUDA loads lazily, as it does by default: set CUDA_MODULE_LOADING to EAGER, or
/// launch each kernel once before the first call. (Rondo loads its own kernels when ranks join.)
/// With 8 or more ranks of a process on a device, or 3 or more that have gradient reducers, the
/// environment variable CUDA_DEVICE_MAX_CONNECTIONS must be 32, else their streams would share
/// queues; a UsageError says so. Where these ranks are threads, the program launches graphs that
/// hold calls, and other work that a call waits for, on one thread at a time (a mutex around
/// cudaGraphLaunch is enough): CUDA has put streams that got work from two threads at the same
/// moment into one queue, where the call of one rank stands behind another's. Rondo does so for
/// what it enqueues itself. Blocks that wait occupy the device: choose fewer channels if other
/// kernels need that room.
///
/// Errors: UsageError is thrown by the call, before anything is enqueued. Other errors end the
/// communicator on all ranks: kernels stop by themselves, the device stays usable, and the next
/// call, check() or wait() throws the error (MismatchError, TimeoutError, PeerError; CudaError
/// where CUDA refuses something). One exception: if another process was killed while kernels wrote
/// to its memory, the driver may end this process's use of the device. The error is then a
/// CudaError instead of a PeerError, and this program can use the device again only in a new
/// process. A deadline counts from a call's first long wait on the device. After an error, the
/// buffers of calls may be used again when the work on their streams has ended; except that a
/// process which was stopped or killed in the middle of a call by `direct` may still write to them,
/// if it has not done so within 2 s and a nanosecond for each byte of the vector.
class RONDO_API Communicator : public Collectives<Communicator, Stream>,
                               public Exchanges<Communicator, Stream> {
 public:
  explicit Communicator(std::shared_ptr<State> state);
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  /// Leaves the group, unless reducers that were made with the communicator still exist: then the
  /// last of them leaves it. Waits for the calls made, each within its deadline; and, where other
  /// processes of the host use this rank's device memory, for these to receive what was sent to
  /// them, as long as a call may take.
  ~Communicator();

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  [[nodiscard]] int device() const;
  /// Blocks of this rank's kernels for large calls by ring.
  [[nodiscard]] int channels() const;
  /// Where the ranks are, the ring's order and the carrier of each edge between devices.
  [[nodiscard]] const Topology& topology() const;
  /// The algorithm that `call` would use: `direct` if the other ranks reach this rank's buffers,
  /// although the call itself goes by ring if those of another rank cannot be reached. Throws
  /// UsageError as the call would.
  [[nodiscard]] Algorithm algorithm_for(const Call& call) const;
  /// The ranks' communicator over host memory, for exchanges between host threads; it fails when
  /// the communicator over devices fails.
  [[nodiscard]] rondo::Communicator& host();

  /// Device memory for `count` elements, zeroed, which the devices of all ranks reach: if all ranks
  /// pass such memory to a call, whole or in parts, Algorithm::direct can carry the call, and each
  /// byte moves once. Ranks of one process on one device reach all memory anyway. Collective over
  /// host threads: every rank calls it, with a count of its own, each on its own thread and not
  /// while a stream is captured; it uses host(), and first waits for the calls made so far. It
  /// counts as a call: on every rank it comes at the same place among them, also if several threads
  /// make calls. No replay of a graph with calls may be unfinished. Throws, on all ranks,
  /// UsageError (more bytes than there are addresses), CudaError (too little memory), and what
  /// check() throws.
  template <Element T>
  [[nodiscard]] RegisteredMemory<T> allocate(std::size_t count) {
    return RegisteredMemory<T>(allocate_bytes(count, sizeof(T)), count);
  }

  /// As Communicator::split: a communicator over the devices of this rank and of all ranks that
  /// pass the same `color`, with the options of this one; nothing for a rank that passes no color.
  /// Collective over host threads: every rank calls it, each on its own thread and not while a
  /// stream is captured; it uses host(), and first waits for the calls made so far. No replay of a
  /// graph with calls may be unfinished. Kernels of several communicators may be at work at once
  /// only as far as their blocks fit on a device together (Options::channels), and as ranks have
  /// connections to it (CUDA_DEVICE_MAX_CONNECTIONS). Throws what join() and Communicator::split
  /// throw, on all ranks of a color.
  [[nodiscard]] std::optional<Communicator> split(std::optional<int> color, int key = 0);
  /// Another communicator over the same devices: split() with one color.
  [[nodiscard]] Communicator duplicate();

  /// Enqueues one collective on `stream`; see Call.
  void enqueue(const Call& call, Stream stream);

  /// Throws if a call has failed so far. Does not wait.
  void check();
  /// Waits until all work on `stream` is done; throws if a call has failed.
  void wait(Stream stream);
  /// Ends the communicator on all ranks: calls in progress and later ones fail with `reason`. Any
  /// thread may call; does not block.
  void abort(const std::string& reason);

 private:
  RegisteredBytes allocate_bytes(std::size_t count, std::size_t element_bytes);
  void leave() noexcept;

  friend Communicator detail::gpu::share(Communicator& communicator, const void* user);
  friend detail::ExclusiveUse& detail::gpu::exclusive_use_of(Communicator& communicator);

  std::shared_ptr<State> state_;
  const void* user_ = nullptr;  // null: the program; else the reducer that this object belongs to
};

/// Joins the devices of `host`'s ranks; `host` may come from from_mpi, from_socket or local_group.
/// Collective over its ranks, each on its own thread. With MPI between hosts, the calls of devices
/// need MPI_THREAD_MULTIPLE, because a thread of Rondo sends and receives the messages.
///
/// Throws UsageError (options out of range or different between ranks, ranks that do not fit on
/// their device), CudaError (no device, no memory), TransportError (a fallback that was refused,
/// too little shared memory): if one rank fails, all ranks throw.
RONDO_API Communicator join(rondo::Communicator host, const Options& options = {});

/// A group in this process, without MPI: rank i on device `devices[i]`; a device may be named
/// several times. Give each communicator to its own thread, or drive all from one thread.
RONDO_API std::vector<Communicator> local_group(const std::vector<int>& devices,
                                                const Options& options = {},
                                                const CommunicatorOptions& host_options = {});

/// Returns how many CUDA devices this process sees; 0 where there is no driver, or librondo was
/// built without CUDA: why_no_device() then says why.
RONDO_API int device_count();
RONDO_API std::string why_no_device();

}  // namespace rondo::cuda
