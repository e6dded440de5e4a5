/// \file
/// What a caller may set on a communicator and on a call. A value set here wins over the
/// environment.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <rondo/types.hpp>

namespace rondo {

/// How the edges between ranks are carried.
/// - `automatic`: shared memory on one host. Between hosts, and towards a rank of the same host
///   that cannot map its memory (a container with another network, say): MPI for communicators of
///   from_mpi(), UCX for those of from_store() and from_environment(). Communicator::topology()
///   says which and why. Too little memory is an error whose text says what to do.
/// - `shm`: shared memory or an error; never a fallback.
/// - `mpi`: MPI on every edge, also on one host; from_mpi() alone.
/// - `ucx`: UCX on every edge, also on one host; for processes.
enum class CarrierChoice : std::uint8_t { automatic, shm, mpi, ucx };

/// How ranks reach each other by a network. `secret` and `without_secret`: for from_store() and
/// from_environment() alone.
struct NetworkOptions {
  /// What all ranks know and nobody else. A process that connects to rank 0 must prove that it
  /// knows the secret, and so must rank 0; the secret itself is never sent. Choose a random one:
  /// whoever watches the network can try out short ones. Unset: RONDO_SECRET; empty: none.
  std::optional<std::string> secret = std::nullopt;
  /// Without a secret, ranks meet only at addresses that no other host reaches (127.0.0.1, ::1).
  /// True: at any address; then whoever reaches rank 0 can take the place of a rank.
  bool without_secret = false;
  /// The network interface to use, such as "eth0": by UCX, and where rank 0 listens if it is not
  /// told an exact address; with from_mpi(), also for the connections by which ranks on several
  /// hosts watch each other. May differ between hosts. Unset: RONDO_INTERFACE. Where that is unset,
  /// too: rank 0 listens at all, and UCX uses InfiniBand and the interfaces by which the ranks have
  /// met (with from_mpi(): by which they watch each other), or any where there are none. Empty:
  /// any.
  std::optional<std::string> interface = std::nullopt;
};

struct CommunicatorOptions {
  /// How long a call may wait for other ranks before it ends as a TimeoutError, counted from its
  /// first long wait. Unset: RONDO_TIMEOUT, else 300 s.
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
  /// Unset: RONDO_ALGO, else automatic.
  std::optional<Algorithm> algorithm = std::nullopt;
  CarrierChoice carrier = CarrierChoice::automatic;
  /// Promises that floating-point reductions are made in rank order, ((r0 + r1) + r2) + ..., with
  /// 16-bit floats computed in f32 and rounded once: the same bits for any size, bucket, placement
  /// of ranks and number of hosts, except that of a sum, product or average that is a NaN, only
  /// that it is one is promised. Only the algorithms that keep that order are used: `one_shot`,
  /// `direct`, on one host `hierarchical`, and else `chain`. If `algorithm` above or RONDO_ALGO
  /// names another, it is not used for such reductions. A call that itself names another
  /// (CallOptions::algorithm; a reducer with GradientOptions::algorithm or layout_independent) is
  /// carried out by that one, without the promise. The cost: in `chain` an edge carries the vector
  /// up to twice (by ring 2(n - 1)/n times), 16-bit floats as f32 the first time, and a reduce or
  /// reduce_scatter moves as much as an all_reduce. Integers cost nothing, nor do sums, products
  /// and averages of two ranks. The ring is then in rank order, so give the ranks of a host
  /// consecutive numbers. On devices `one_shot` and `direct` keep the order; a call for which the
  /// order matters and which neither of them can carry is a UsageError. The same on every rank.
  bool rank_order = false;
  /// Payload of one FIFO slot, a multiple of 64; 0: chosen by carrier. The same on every rank.
  std::size_t slot_bytes = 0;
  /// Slots of one FIFO, at least 2; 0: chosen by carrier. The same on every rank. The FIFOs of
  /// Algorithm::tree have at least 6.
  std::uint32_t slots = 0;
  NetworkOptions network = {};
  /// from_store(), from_environment() and from_socket() call it now and then while they wait for
  /// other ranks, on the thread that joins. If it returns true, which another thread may have
  /// arranged (`[token] { return token.stop_requested(); }`), they throw a TransportError within
  /// some tenths of a second, and the other ranks get errors, too. It must not throw. Empty: a join
  /// waits until `timeout`.
  std::function<bool()> give_up_if = {};
};

struct CallOptions {
  /// Unset: the communicator's.
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
  /// Unset: the communicator's.
  std::optional<Algorithm> algorithm = std::nullopt;
  /// For calls that run beside computation: a rank that waits sleeps almost at once, where it would
  /// otherwise spin, and so leaves its core to computing threads; each wait then takes some
  /// microseconds longer. May differ between ranks. Calls on devices ignore it.
  bool background = false;
};

}  // namespace rondo
