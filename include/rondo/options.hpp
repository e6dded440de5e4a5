/// \file
/// What a caller may set on a communicator and on a call. A value set here wins over the
/// environment.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <rondo/types.hpp>

namespace rondo {

/// How the edges between ranks are carried.
/// - `automatic`: shared memory on one host, MPI between hosts, and MPI towards a rank of the same host
///   that cannot map its memory (a container with another network, say); Communicator::topology() says which
///   and why. Too little memory is an error whose text says what to do.
/// - `shm`: shared memory or an error; never a fallback.
/// - `mpi`: MPI on every edge, also on one host.
enum class CarrierChoice : std::uint8_t { automatic, shm, mpi };

struct CommunicatorOptions {
  /// How long a call may wait for other ranks before it ends as a TimeoutError, counted from its first
  /// long wait. Unset: RONDO_TIMEOUT, else 300 s.
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
  /// Unset: RONDO_ALGO, else automatic.
  std::optional<Algorithm> algorithm = std::nullopt;
  CarrierChoice carrier = CarrierChoice::automatic;
  /// Promises that floating-point reductions are made in rank order, ((r0 + r1) + r2) + ..., with 16-bit floats computed
  /// in f32 and rounded once: the same bits for any size, bucket, placement of ranks and number of hosts. Only the
  /// algorithms that keep that order are used: `one_shot`, `direct`, on one host `hierarchical`, and else `chain`. If
  /// `algorithm` above or RONDO_ALGO names another, it is not used for such reductions. A call that itself names another
  /// (CallOptions::algorithm; a reducer with GradientOptions::algorithm or layout_independent) is carried out by that
  /// one, without the promise.
  /// The cost: in `chain` an edge carries the vector up to twice (by ring 2(n - 1)/n times), 16-bit floats as f32 the
  /// first time, and a reduce or reduce_scatter moves as much as an all_reduce. Integers cost nothing, nor do sums,
  /// products and averages of two ranks. The ring is then in rank order, so give the ranks of a host consecutive
  /// numbers. Devices ignore this option. The same on every rank.
  bool rank_order = false;
  /// Payload of one FIFO slot, a multiple of 64; 0: chosen by carrier. The same on every rank.
  std::size_t slot_bytes = 0;
  /// Slots of one FIFO, at least 2; 0: chosen by carrier. The same on every rank.
  std::uint32_t slots = 0;
};

struct CallOptions {
  /// Unset: the communicator's.
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
  /// Unset: the communicator's.
  std::optional<Algorithm> algorithm = std::nullopt;
  /// For calls that run beside computation: a rank that waits sleeps almost at once, where it would otherwise spin,
  /// and so leaves its core to computing threads; each wait then takes some microseconds longer. May differ between
  /// ranks. Calls on devices ignore it.
  bool background = false;
};

}  // namespace rondo
