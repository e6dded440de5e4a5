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
#include <rondo/errors.hpp>
#include <rondo/export.hpp>
#include <rondo/options.hpp>
#include <rondo/topology.hpp>

struct CUstream_st;

namespace rondo::cuda {

/// What CUDA calls cudaStream_t.
using Stream = CUstream_st*;

/// Whether devices read and write each other's memory.
/// - `automatic`: where they can, and a test pattern has shown at the start that the data arrives; else
///   through pinned host memory. Communicator::topology() says which and why.
/// - `required`: everywhere; what would be a fallback is an error that says why.
/// - `avoided`: nowhere; pinned host memory on every edge.
enum class PeerAccess : std::uint8_t { automatic, required, avoided };

/// For Options::device.
inline constexpr int kCurrentDevice = -1;
/// The i-th rank of a host takes device i modulo the number of devices.
inline constexpr int kSpreadOverDevices = -2;

/// The same on every rank, but for `device`.
struct Options {
  int device = kCurrentDevice;
  PeerAccess peer_access = PeerAccess::automatic;
  /// Independent rings side by side, each a thread block on every rank, at most 256; 0: chosen. All
  /// blocks of all ranks that share a device must fit on it at once, which is checked.
  int channels = 0;
  /// Of a block, a multiple of 32 up to 512; 0: chosen.
  int threads = 0;
  /// Payload of one FIFO slot, a multiple of 64; 0: chosen.
  std::size_t slot_bytes = 0;
  /// Slots of one FIFO, at least 2; 0: chosen.
  std::uint32_t slots = 0;
  /// `automatic` calls up to this size by one_shot, where every rank reaches the memory of every other;
  /// unset: chosen. At most 1 MiB.
  std::optional<std::size_t> one_shot_bytes = std::nullopt;
};

struct State;

/// One rank's membership in a group whose buffers are device memory. A move-only owner; one that was
/// moved from may only be destroyed or assigned to.
///
/// Calls are those of rondo::Communicator, on memory that the rank's device can reach, and ordered by a
/// stream: a call is enqueued and returns; it starts when what was enqueued on the stream before has
/// ended, and what is enqueued behind it waits for it. Nothing is allocated (but for `naive`
/// reduce_scatter and reduce to a rank other than 0), and a call can be captured in a CUDA graph and
/// replayed; every rank then replays alike. Buffers are aligned to their elements.
///
/// Every rank makes the same calls in the same order. Calls on different streams of one rank run in
/// the order in which they were made; those that are captured are ordered by their graphs alone, and
/// their replays must have ended before the communicator goes. A call returns at once while fewer
/// than 48 of this rank's have not ended. With more it may wait for the oldest of them, so that no launch queue
/// of CUDA's fills up. One thread may drive many ranks, as long as it gives each its call before it gives
/// any of them 48 more. Replays of graphs are the caller's to bound.
///
/// Several ranks may share one device. Each then needs a stream of its own, made with
/// cudaStreamNonBlocking: on the default stream, one rank's call would stand behind another's, which
/// waits for it. Nor may work that a program does on the device wait for a call of one rank before the
/// other ranks' calls are enqueued: cudaDeviceSynchronize and cudaFree wait for those of all ranks of the
/// process. With 8 or more ranks of a process on a device, or 3 or more that have gradient reducers, the
/// environment variable CUDA_DEVICE_MAX_CONNECTIONS must be 32, or UsageError says so: else their streams share
/// queues. Waiting blocks take room from other kernels: choose fewer channels where that hurts.
///
/// Errors: UsageError at the call, before anything is enqueued. Others end the communicator on all
/// ranks: kernels stop by themselves, the device stays usable, and the reason is thrown by the next
/// call, check() or wait() (MismatchError, TimeoutError, PeerError; CudaError where CUDA refuses
/// something). Only where another process was killed while kernels wrote to its memory, the driver may end this
/// process's use of the device: a CudaError then takes PeerError's place, and the device needs a new process. A deadline counts from a call's first long wait on the device.
class RONDO_API Communicator : public Collectives<Communicator, Stream> {
 public:
  explicit Communicator(std::unique_ptr<State> state);
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  /// Waits for the calls made, each within its deadline.
  ~Communicator();

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  [[nodiscard]] int device() const;
  /// Blocks of this rank's kernels for large calls.
  [[nodiscard]] int channels() const;
  /// Where the ranks are, the ring's order and the carrier of each edge between devices.
  [[nodiscard]] const Topology& topology() const;
  /// The algorithm that `call` would use. Throws UsageError if it asks for one that cannot carry it.
  [[nodiscard]] Algorithm algorithm_for(const Call& call) const;
  /// The ranks' communicator over host memory, for exchanges between hosts' threads; it fails when this
  /// one does.
  [[nodiscard]] rondo::Communicator& host();

  /// Enqueues one collective on `stream`; see Call.
  void enqueue(const Call& call, Stream stream);

  /// Throws if a call has failed so far. Does not wait.
  void check();
  /// Until all that is on `stream` is done; throws if a call has failed.
  void wait(Stream stream);
  /// Ends the communicator on all ranks: calls in progress and later ones fail with `reason`. Any
  /// thread may call; does not block.
  void abort(const std::string& reason);

 private:
  std::unique_ptr<State> state_;
};

/// Joins the devices of `host`'s ranks, whatever made that communicator: from_mpi, from_socket or
/// local_group. Collective over its ranks, each on a thread of its own. With MPI between hosts, the
/// calls of devices need MPI_THREAD_MULTIPLE, since a thread of Rondo's drives the messages.
///
/// Throws UsageError (options out of range or different between ranks, ranks that do not fit on their
/// device), CudaError (no device, no memory), TransportError (a fallback that was refused, too little
/// shared memory): whatever one rank meets, all ranks throw.
RONDO_API Communicator join(rondo::Communicator host, const Options& options = {});

/// A group in this process, without MPI: rank i on device `devices[i]`; a device may be named several
/// times. Hand each to a thread of its own, or drive them all from one.
RONDO_API std::vector<Communicator> local_group(const std::vector<int>& devices,
                                                const Options& options = {},
                                                const CommunicatorOptions& host_options = {});

/// How many CUDA devices this process sees; 0 where there is no driver, or librondo was built without
/// CUDA: why_no_device() then says why.
RONDO_API int device_count();
RONDO_API std::string why_no_device();

}  // namespace rondo::cuda
