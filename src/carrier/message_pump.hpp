// Carries FIFOs between hosts as messages: a slot in use, header first, is one message.
//
// Towards a peer: a published slot is sent from where it is, and released once the messenger is done with it.
// From a peer: a receive is posted into every free slot; slots are published in the order of their
// messages, which the messenger keeps for one sender and tag. So the engine sees two local FIFOs.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include <rondo/errors.hpp>

#include "base/index.hpp"
#include "carrier/messenger.hpp"
#include "carrier/pump.hpp"
#include "carrier/run_ahead.hpp"
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

class MessagePump final : public Pump {
 public:
  MessagePump(std::unique_ptr<Messenger> messenger, PumpEdges edges);
  ~MessagePump() override;

  void begin_call(Algorithm algorithm) override;
  void drive_all() override { drives_all_ = true; }
  bool progress() override;
  void look_for_abort() override;
  void carry(const PumpEdges::Out& edge, Mapping fifo) override;
  void carry(const PumpEdges::In& edge, Mapping fifo) override;
  std::unique_ptr<Pump> another(PumpEdges edges) override;
  std::unique_ptr<Pump> among(const std::vector<int>& ranks, PumpEdges edges) override;
  [[nodiscard]] std::optional<int> busy_peer() override;
  void tell_call(int peer, const Signature& call) override;
  [[nodiscard]] const std::vector<std::optional<Signature>>& told_calls() const override {
    return told_calls_;
  }
  [[nodiscard]] bool has_left(int peer) override;
  void tell_confirmed(std::uint64_t sequence) override;
  void open_connections() override { messenger_->connect(ranks_elsewhere_); }
  void expect_confirmation(int rank, std::uint64_t sequence) override {
    expected_calls_[Index(rank)] = sequence + 1;
  }
  void hear_confirmations() override;
  [[nodiscard]] bool has_confirmed(int rank, std::uint64_t sequence) const override {
    return confirmed_calls_[Index(rank)] > sequence;
  }
  void announce_abort(const AbortRecord& record) noexcept override;
  [[nodiscard]] bool can_be_driven() const override { return messenger_->can_be_used(); }
  [[nodiscard]] std::string objection_to_this_thread() const override {
    return messenger_->objection_to_this_thread();
  }
  [[nodiscard]] std::string objection_to_progress_thread() const override {
    return messenger_->objection_to_progress_thread();
  }

 private:
  // How long a rank that lost its connection to a peer waits for the message that says why the communicator has ended.
  static constexpr std::chrono::milliseconds kForTheReason{200};

  static constexpr int kAbortTag = 0;
  static constexpr int kCallTag = 1;
  static constexpr int kConfirmTag = 2;
  static constexpr int kFirstSlotTag =
      5;  // and one more for each channel; 3 and 4 are the messenger's own

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
    int tag;
    RecvEnd end;
    OperationRing messages;
    RunAhead run_ahead;
  };
  struct Incoming {
    int peer;
    AlgorithmSet algorithms;
    int tag;
    SendEnd end;
    OperationRing messages;
  };

  // All memory that the messenger reads and writes. After a failure an operation may never end: then neither this memory
  // nor the messenger is ever freed.
  struct Memory {
    std::vector<Mapping> fifos;
    AbortMessage heard;
    AbortMessage said;
    CallMessage heard_call;
    CallMessage said_call;
    ConfirmMessage heard_confirmation;
    ConfirmMessage said_confirmation;
  };

  void add(const PumpEdges::Out& edge);
  void add(const PumpEdges::In& edge);
  // Receives what others have sent for certain; false where that does not come.
  bool hear_the_rest();
  // Tries for up to a second to end every operation under way; whether all have ended.
  bool end_operations();
  void abandon_receives();
  bool hear_what_is_expected();
  std::vector<Operation> open_receives();
  std::vector<Operation> open_sends();
  [[nodiscard]] bool drives(AlgorithmSet users) const {
    return drives_all_ || users.has(algorithm_);
  }
  // Whether anything began.
  bool start_sends(Outgoing& edge);
  bool start_receives(Incoming& edge);
  enum class Direction { out, both };  // sends alone, or receives too
  // Whether anything ended. Looks at the oldest operation of each edge.
  bool finish_oldest(Direction direction);
  // A rank that has failed tells the reason, then ends, and its connections with it: the reason is the better error. So
  // where `act` finds a connection lost, this function listens for the reason, and returns if the board has that now. Throws
  // TransportError if nobody tells one.
  template <class Act>
  void unless_told_why(Act act) {
    try {
      act();
    } catch (const TransportError&) {
      if (!hears_of_abort(kForTheReason)) throw;
    }
  }
  // Listens for the reason for so long.
  bool hears_of_abort(std::chrono::milliseconds patience);
  bool move_slots();
  void listen_for_calls();
  void listen_for_confirmations();
  void look_for_calls();
  void send_call(int peer, const Signature& call);
  void receive_confirmations();
  void send_confirmation(std::uint64_t sequence);
  std::optional<int> peer_still_sent_to();

  std::unique_ptr<Messenger> messenger_;
  std::vector<Outgoing> outgoing_;
  std::vector<Incoming> incoming_;
  std::vector<int> ranks_elsewhere_;
  AbortBoard* board_;
  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
  // Used by finish_oldest() alone; members, so that it allocates nothing.
  struct Finisher {
    Outgoing* out;
    Incoming* in;
  };
  std::vector<Pending> oldest_;
  std::vector<Finisher> finishers_;
  std::vector<std::size_t> ended_;
  Operation hearing_;
  Operation hearing_call_;
  Operation saying_call_;
  Operation hearing_confirmation_;
  std::vector<Operation> saying_confirmation_;  // to ranks_elsewhere_, in their order
  int told_peer_ = kAnyPeer;                    // to whom said_call went
  std::vector<std::optional<Signature>> told_calls_;
  // By rank: one more than the number of the last call that it has confirmed, and of the last that it will confirm.
  std::vector<std::uint64_t> confirmed_calls_;
  std::vector<std::uint64_t> expected_calls_;
  std::uint64_t session_;
  std::uint64_t pumps_made_ = 0;  // by another()
  bool announced_ = false;
  std::vector<Operation> saying_;
  Algorithm algorithm_ = Algorithm::ring;
  bool drives_all_ = false;
  std::uint64_t rounds_ = 0;
};

}  // namespace rondo::detail
