// A carrier that has to be driven: it moves published slots to another host and fills free slots
// with what comes from there. Every wait drives it; it has no thread of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rondo/types.hpp>

#include "base/algorithm_set.hpp"
#include "carrier/abort_board.hpp"
#include "carrier/memory.hpp"
#include "fifo/fifo.hpp"

namespace rondo::detail {

// What a pump is to carry for its rank: of each FIFO the end that the engine does not use, and the ranks
// to tell when the communicator ends.
struct PumpEdges {
  struct Out {
    int peer = 0;
    AlgorithmSet algorithms;
    int channel = 0;
    RecvEnd published;  // slots that the engine has filled
  };
  struct In {
    int peer = 0;
    AlgorithmSet algorithms;
    int channel = 0;
    SendEnd free;  // slots that the engine will read
  };
  std::vector<Out> out;
  std::vector<In> in;
  std::vector<Mapping> fifos;        // the memory of these FIFOs; the pump owns it from now on
  std::vector<int> ranks_elsewhere;  // which do not share this rank's abort board
  AbortBoard* board = nullptr;
  // Distinguishes messages of this communicator from those of an earlier one; the same on all its ranks.
  std::uint64_t session = 0;
};

class Pump {
 public:
  Pump() = default;
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;
  virtual ~Pump() = default;

  // A call begins: from now on only the edges that its algorithm uses are driven.
  virtual void begin_call(Algorithm algorithm) = 0;
  // Until the next call begins, all edges are driven: a peer may be in another call than this rank.
  virtual void drive_all() = 0;
  // Moves what can be moved without waiting; whether there was anything. Throws TransportError.
  virtual bool progress() = 0;
  // Raises the abort board if a rank on another host has told of an abort. Throws TransportError.
  virtual void look_for_abort() = 0;
  // From now on carries one more edge, whose FIFO is in `fifo`. The peer does the same with its end of the edge, at any
  // time: its messages wait until then. Throws TransportError.
  virtual void carry(const PumpEdges::Out& edge, Mapping fifo) = 0;
  virtual void carry(const PumpEdges::In& edge, Mapping fifo) = 0;
  // Another pump between the same ranks, for other edges. Collective over the ranks. Throws
  // TransportError.
  virtual std::unique_ptr<Pump> another(PumpEdges edges) = 0;
  // A pump between some of the ranks, for a communicator in which they have the order of `ranks`. Collective over them.
  // Throws TransportError.
  virtual std::unique_ptr<Pump> among(const std::vector<int>& ranks, PumpEdges edges) = 0;
  // The first peer to which a slot published by this rank, or a confirmation, is still being sent; nothing if there is
  // none. Throws TransportError.
  [[nodiscard]] virtual std::optional<int> busy_peer() = 0;
  // Tells `peer`, on another host, which call this rank is in; once for each call and peer. For a rank that
  // waits: if the two ranks' calls differ, it may be that neither sends on an edge that the other reads. Throws TransportError.
  virtual void tell_call(int peer, const Signature& call) = 0;
  // The call that each rank was in when it last told this one so, by rank.
  [[nodiscard]] virtual const std::vector<std::optional<Signature>>& told_calls() const = 0;
  // Whether `peer`, on another host, is known to have destroyed its communicator, although that has not failed. False where the
  // network does not tell. Waits up to a second for the reason of a failure, which it raises on the abort board.
  [[nodiscard]] virtual bool has_left(int peer) = 0;
  // Opens the connections to all ranks elsewhere before tell_confirmed() uses them. Collective. Throws TransportError.
  virtual void open_connections() = 0;
  // Tells every rank that does not share this one's memory that all ranks make call number `sequence` as this one
  // does. To be called again only once busy_peer() has found nothing. Throws TransportError.
  virtual void tell_confirmed(std::uint64_t sequence) = 0;
  // `rank` will confirm call number `sequence` to this rank: the pump's destructor waits up to a second for that
  // message, unless the communicator has ended.
  virtual void expect_confirmation(int rank, std::uint64_t sequence) = 0;
  // Receives the confirmations that have arrived. Throws TransportError.
  virtual void hear_confirmations() = 0;
  // Whether `rank` has confirmed call number `sequence`, or a later one, in a message received here.
  [[nodiscard]] virtual bool has_confirmed(int rank, std::uint64_t sequence) const = 0;
  // Tells the ranks on other hosts that the communicator has ended, unless they know: once, in at
  // most a second.
  virtual void announce_abort(const AbortRecord& record) noexcept = 0;
  // False once the program has shut down the library that the pump uses (MPI_Finalize).
  [[nodiscard]] virtual bool can_be_driven() const = 0;
  // Why the calling thread, or a thread of Rondo's own, may not drive this pump; empty when it may.
  [[nodiscard]] virtual std::string objection_to_this_thread() const = 0;
  [[nodiscard]] virtual std::string objection_to_progress_thread() const = 0;
};

}  // namespace rondo::detail
