// A carrier that has to be driven: it moves published slots to other hosts and fills free slots
// with what comes from there. Every wait drives it; it has no thread of its own.
//
// A slot in use, header first, is one message. Towards a peer: a published slot is sent from where
// it is, and released once the messenger is done with it. From a peer: a receive is posted into
// every free slot; slots are published in the order of their messages, which the messenger keeps
// for one sender and tag. So the engine sees two local FIFOs.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fifo/fifo.hpp"
#include "net/messenger.hpp"
#include "net/notices.hpp"
#include "net/pump_edges.hpp"
#include "net/run_ahead.hpp"

namespace rondo::detail {

class Pump {
 public:
  Pump(std::unique_ptr<Messenger> messenger, PumpEdges edges);
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;
  // Waits for up to a second for the confirmations that are expected, unless the communicator has
  // ended.
  ~Pump();

  // A call begins: from now on only the edges that its algorithm uses are driven. `between_hosts`:
  // by which it goes between hosts, if it is hierarchical.
  void begin_call(Algorithm algorithm, Algorithm between_hosts = Algorithm::automatic);
  // Until the next call begins, all edges are driven: a peer may be in another call than this rank.
  void drive_all() { drives_all_ = true; }
  // Moves what can be moved without waiting. Returns whether there was anything. Throws
  // TransportError.
  bool progress();
  // Returns the first peer to which a slot published by this rank, or a confirmation, is still
  // being sent; nothing if there is none. Throws TransportError.
  [[nodiscard]] std::optional<int> busy_peer();
  // From now on carries one more edge, whose FIFO is in `fifo`. The peer does the same with its end
  // of the edge, at any time: its messages wait until then. Throws TransportError.
  void carry(const PumpEdges::Out& edge, Mapping fifo);
  void carry(const PumpEdges::In& edge, Mapping fifo);

  // Returns what goes between this rank and ranks on other hosts beside slots.
  [[nodiscard]] Notices& notices() { return notices_; }
  // Whether `peer`, on another host, is known to have destroyed its communicator, although that has
  // not failed. False where the network does not know. Waits up to a second for the reason of a
  // failure, which it raises on the abort board.
  [[nodiscard]] bool has_left(int peer);

  // Makes another pump between the same ranks, for other edges. Collective over the ranks. Throws
  // TransportError.
  std::unique_ptr<Pump> another(PumpEdges edges);
  // Makes a pump between some of the ranks, for a communicator in which they have the order of
  // `ranks`. Collective over them. Throws TransportError.
  std::unique_ptr<Pump> among(const std::vector<int>& ranks, PumpEdges edges);
  // Opens the connections to all ranks elsewhere before they are first used. Collective. Throws
  // TransportError.
  void open_connections() { messenger_->connect(ranks_elsewhere_); }

  // Says whether driving this pump drives MPI (Messenger::drives_mpi).
  [[nodiscard]] bool drives_mpi() const { return messenger_->drives_mpi(); }
  // False once the program has shut down the library that the pump uses (MPI_Finalize).
  [[nodiscard]] bool can_be_driven() const { return messenger_->can_be_used(); }
  // Why the calling thread, or a thread of Rondo's own, may not drive this pump; empty when it may.
  [[nodiscard]] std::string objection_to_this_thread() const {
    return messenger_->objection_to_this_thread();
  }
  [[nodiscard]] std::string objection_to_progress_thread() const {
    return messenger_->objection_to_progress_thread();
  }

 private:
  static constexpr int kFirstSlotTag =
      Notices::kTags + 2;  // and one more for each channel; 3 and 4 are the messenger's own

  // Consecutive messages of one edge, oldest first.
  class OperationRing {
   public:
    explicit OperationRing(std::uint32_t slots) : operations_(slots) {}
    [[nodiscard]] std::uint64_t outstanding() const { return started_ - finished_; }
    Operation& start() { return operations_[started_++ % operations_.size()]; }
    Operation& oldest() { return operations_[finished_ % operations_.size()]; }
    void finish_oldest() { ++finished_; }

   private:
    std::vector<Operation> operations_;
    std::uint64_t started_ = 0;
    std::uint64_t finished_ = 0;
  };
  struct Outgoing {
    int peer;
    AlgorithmSet algorithms;
    AlgorithmSet between_hosts;
    int tag;
    RecvEnd end;
    OperationRing messages;
    RunAhead run_ahead;
  };
  struct Incoming {
    int peer;
    AlgorithmSet algorithms;
    AlgorithmSet between_hosts;
    int tag;
    SendEnd end;
    OperationRing messages;
  };

  void add(const PumpEdges::Out& edge);
  void add(const PumpEdges::In& edge);
  template <class PumpedEdge>
  [[nodiscard]] bool drives(const PumpedEdge& edge) const {
    if (drives_all_) return true;
    return algorithm_ == Algorithm::hierarchical ? edge.between_hosts.has(between_hosts_)
                                                 : edge.algorithms.has(algorithm_);
  }
  // Returns whether anything began.
  bool start_sends(Outgoing& edge);
  bool start_receives(Incoming& edge);
  enum class Direction { out, both };  // sends alone, or receives too
  // Returns whether anything ended. Looks at the oldest operation of each edge.
  bool finish_oldest(Direction direction);
  bool move_slots();
  // Tries for up to a second to end every operation under way; whether all have ended.
  bool end_operations();
  void abandon_receives();
  // Memory that a messenger may still read or write is never used again. Nor, where messages could
  // reach another messenger, is the number under which they travel.
  void abandon_memory();
  std::vector<Operation> open_receives();
  std::vector<Operation> open_sends();

  std::unique_ptr<Messenger> messenger_;
  std::vector<int> ranks_elsewhere_;
  AbortBoard* board_;
  std::uint64_t session_;
  Notices notices_;
  std::vector<Outgoing> outgoing_;
  std::vector<Incoming> incoming_;
  // The memory of the FIFOs. After a failure an operation may never end: then neither this memory
  // nor the messenger is ever freed.
  std::unique_ptr<std::vector<Mapping>> fifos_;
  // These are used by finish_oldest() alone; they are members, so that it allocates nothing.
  struct Finisher {
    Outgoing* out;
    Incoming* in;
  };
  std::vector<Pending> oldest_;
  std::vector<Finisher> finishers_;
  std::vector<std::size_t> ended_;
  std::uint64_t pumps_made_ = 0;  // by another()
  Algorithm algorithm_ = Algorithm::ring;
  Algorithm between_hosts_ = Algorithm::automatic;
  bool drives_all_ = false;
  std::uint64_t rounds_ = 0;
};

}  // namespace rondo::detail
