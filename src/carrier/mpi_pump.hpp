// Carries FIFOs between hosts as MPI messages: a slot in use, header first, is one message.
//
// Towards a peer: a published slot is sent from where it is, and released once MPI is done with it.
// From a peer: a receive is posted into every free slot; slots are published in the order of their
// messages, which MPI keeps for one sender and tag. So the engine sees two local FIFOs.
//
// MPI may buffer messages that the receiver has not taken yet. To bound how much, one message after every half
// FIFO of bytes, or a thousand messages, is sent synchronously (MPI_Issend). Not after every few messages: the
// end of a small call would wait for the receiver's answer.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "base/check_mpi.hpp"
#include "carrier/pump.hpp"
#include "fifo/fifo.hpp"

namespace rondo::detail {

// What a rank tells ranks on other hosts when the communicator ends.
struct AbortMessage {
  std::int32_t rank = 0;
  std::array<char, 1012> text{};
};

// What a rank that waits tells a rank on another host. `session` is the communicator's: messages with another one
// are ignored.
struct CallMessage {
  std::uint64_t session = 0;
  std::int32_t rank = 0;
  Signature call;
};

// What the rank that confirms a call tells each rank that does not share its memory.
struct ConfirmMessage {
  std::uint64_t session = 0;
  std::int32_t rank = 0;
  std::uint64_t sequence = 0;
};

class MpiPump final : public Pump {
 public:
  // Owns `comm`, which nothing else uses.
  MpiPump(MPI_Comm comm, PumpEdges edges);
  ~MpiPump() override;

  void begin_call(Algorithm algorithm) override;
  void drive_all() override { drives_all_ = true; }
  bool progress() override;
  void look_for_abort() override;
  std::unique_ptr<Pump> another(PumpEdges edges) override;
  std::unique_ptr<Pump> among(const std::vector<int>& ranks, PumpEdges edges) override;
  [[nodiscard]] std::optional<int> busy_peer() override;
  void tell_call(int peer, const Signature& call) override;
  [[nodiscard]] const std::vector<std::optional<Signature>>& told_calls() const override {
    return told_calls_;
  }
  void tell_confirmed(std::uint64_t sequence) override;
  void open_connections() override;
  void expect_confirmation(int rank, std::uint64_t sequence) override {
    expected_calls_[static_cast<std::size_t>(rank)] = sequence + 1;
  }
  void hear_confirmations() override;
  [[nodiscard]] bool has_confirmed(int rank, std::uint64_t sequence) const override {
    return confirmed_calls_[static_cast<std::size_t>(rank)] > sequence;
  }
  void announce_abort(const AbortRecord& record) noexcept override;
  [[nodiscard]] bool can_be_driven() const override;
  [[nodiscard]] std::string objection_to_this_thread() const override;
  [[nodiscard]] std::string objection_to_progress_thread() const override;

 private:
  static constexpr int kAbortTag = 0;
  static constexpr int kCallTag = 1;
  static constexpr int kConfirmTag = 2;
  static constexpr int kConnectTag = 3;
  static constexpr int kGroupTag = 4;
  static constexpr int kFirstSlotTag = 5;  // and one more for each channel

  // Requests for consecutive messages of one edge, oldest first.
  class RequestRing {
   public:
    explicit RequestRing(std::uint32_t slots) : requests_(slots, MPI_REQUEST_NULL) {}
    [[nodiscard]] std::uint64_t outstanding() const { return started_ - finished_; }
    MPI_Request& start() { return requests_[started_++ % requests_.size()]; }
    MPI_Request& oldest() { return requests_[finished_ % requests_.size()]; }
    void finish_oldest() { ++finished_; }

   private:
    std::vector<MPI_Request> requests_;
    std::uint64_t started_ = 0;
    std::uint64_t finished_ = 0;
  };
  // Counts what was sent since the last synchronous message.
  class RunAhead {
   public:
    explicit RunAhead(const FifoGeometry& fifo) : most_bytes_(fifo.slots * fifo.slot_bytes / 2) {}
    bool must_wait_after(std::uint64_t bytes);

   private:
    std::uint64_t most_bytes_;
    std::uint64_t bytes_ = 0;
    std::uint64_t messages_ = 0;
  };
  struct Outgoing {
    int peer;
    AlgorithmSet algorithms;
    int tag;
    RecvEnd end;
    RequestRing requests;
    RunAhead run_ahead;
  };
  struct Incoming {
    int peer;
    AlgorithmSet algorithms;
    int tag;
    SendEnd end;
    RequestRing requests;
  };

  // A confirmation on its way to all ranks elsewhere.
  struct Telling {
    ConfirmMessage said;
    std::vector<MPI_Request> requests;
  };
  // All memory that MPI reads and writes. After a failure an operation may never end: then neither this memory
  // nor the MPI communicator is ever freed.
  struct Memory {
    std::vector<Mapping> fifos;
    AbortMessage heard;
    AbortMessage said;
    CallMessage heard_call;
    CallMessage said_call;
    ConfirmMessage heard_confirmation;
    std::list<Telling> tellings;  // oldest first
  };

  // Tries for up to a second to end every operation under way; whether all have ended.
  bool end_operations();
  bool hear_what_is_expected();
  std::vector<MPI_Request> open_requests();
  [[nodiscard]] bool drives(AlgorithmSet users) const {
    return drives_all_ || users.has(algorithm_);
  }
  // Whether anything began.
  bool start_sends(Outgoing& edge);
  bool start_receives(Incoming& edge);
  enum class Direction { out, both };  // sends alone, or receives too
  // Whether anything ended. Looks at the oldest operation of each edge.
  bool finish_oldest(Direction direction);
  void check_ended(int code, int done) const;
  // Throws TransportError if the operation failed; `what` and `peer` say which it was.
  static bool finished(MPI_Request& request, const char* what, int peer);
  void listen_for_calls();
  void listen_for_confirmations();
  void look_for_calls();

  MPI_Comm comm_;
  int thread_level_ = MPI_THREAD_SINGLE;
  std::vector<Outgoing> outgoing_;
  std::vector<Incoming> incoming_;
  std::vector<int> ranks_elsewhere_;
  int rank_ = 0;  // in comm_
  AbortBoard* board_;
  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
  // Used by finish_oldest() alone; members, so that it allocates nothing.
  struct Finisher {
    Outgoing* out;
    Incoming* in;
  };
  std::vector<MPI_Request> oldest_;
  std::vector<Finisher> finishers_;
  std::vector<int> ended_;
  std::vector<MPI_Status> statuses_;
  MPI_Request hearing_ = MPI_REQUEST_NULL;
  MPI_Request hearing_call_ = MPI_REQUEST_NULL;
  MPI_Request saying_call_ = MPI_REQUEST_NULL;
  MPI_Request hearing_confirmation_ = MPI_REQUEST_NULL;
  int told_peer_ = kAnyPeer;  // to whom said_call went
  std::vector<std::optional<Signature>> told_calls_;
  // By rank: one more than the number of the last call that it has confirmed, and of the last that it will confirm.
  std::vector<std::uint64_t> confirmed_calls_;
  std::vector<std::uint64_t> expected_calls_;
  std::uint64_t session_;
  std::uint64_t pumps_made_ = 0;  // by another()
  bool announced_ = false;
  std::vector<MPI_Request> saying_;
  Algorithm algorithm_ = Algorithm::ring;
  bool drives_all_ = false;
  std::uint64_t rounds_ = 0;
};

}  // namespace rondo::detail
