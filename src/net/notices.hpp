// Notices are what ranks of different hosts send each other beside slots: that the communicator has
// ended, which call they are in, and that all ranks made a call.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <rondo/errors.hpp>

#include "base/index.hpp"
#include "carrier/abort_board.hpp"
#include "fifo/signature.hpp"
#include "net/messenger.hpp"

namespace rondo::detail {

struct AbortMessage {
  std::int32_t rank = 0;
  std::array<char, 1012> text{};
};

class Notices {
 public:
  static constexpr int kTags = 3;  // tags 0, 1 and 2 of the messenger

  // Borrows the messenger and the board. `ranks_elsewhere`: those that do not share this rank's
  // board.
  Notices(Messenger& messenger, AbortBoard& board, std::vector<int> ranks_elsewhere,
          std::uint64_t session);

  // Begins to receive. Before this, nothing is under way.
  void listen();

  // Raises the abort board if a rank on another host has announced an abort. Throws TransportError.
  void look_for_abort();
  // Looks for an abort for so long. Returns whether the board is raised then.
  bool receives_abort(std::chrono::milliseconds patience);
  // Tells the ranks on other hosts that the communicator has ended, unless they know: once, in at
  // most a second.
  void announce_abort(const AbortRecord& record) noexcept;
  // A rank that has failed sends the reason, then ends, and its connections with it: the reason is
  // the better error. So if `act` throws TransportError, this function waits a little for the
  // reason, and returns if the abort board is raised then; else it throws the error again.
  template <class Act>
  void unless_told_why(Act act) {
    try {
      act();
    } catch (const TransportError&) {
      if (!receives_abort(kForTheReason)) throw;
    }
  }

  // Sends `peer`, on another host, which call this rank is in, unless it was the last one to get
  // that, for the same call. For a rank that waits: if the two ranks' calls differ, it may be that
  // neither sends on an edge that the other reads. Never blocks, except that it waits for the
  // reason of an abort as above. Throws TransportError.
  void tell_call(int peer, const Signature& call);
  // Receives what other ranks have sent. Throws TransportError.
  void look_for_calls();
  // Returns, by rank, the call that each rank was in when it last told this one so.
  [[nodiscard]] const std::vector<std::optional<Signature>>& told_calls() const {
    return told_calls_;
  }

  // Tells every rank that does not share this one's memory that all ranks make call number
  // `sequence` as this one does. To be called again only once peer_still_told() has found nothing.
  // Throws TransportError.
  void tell_confirmed(std::uint64_t sequence);
  // Returns the first peer to which a confirmation is still being sent; nothing if there is none.
  // Throws TransportError.
  std::optional<int> peer_still_told();
  // `rank` will confirm call number `sequence` to this rank: receive_the_rest() waits for that
  // message.
  void expect_confirmation(int rank, std::uint64_t sequence) {
    expected_calls_[Index(rank)] = sequence + 1;
  }
  // Receives the confirmations that have arrived. Throws TransportError.
  void look_for_confirmations();
  // Whether `rank` has confirmed call number `sequence`, or a later one, in a message received
  // here.
  [[nodiscard]] bool has_confirmed(int rank, std::uint64_t sequence) const {
    return confirmed_calls_[Index(rank)] > sequence;
  }

  // Before the messenger ends: receives what others have sent for certain, for up to a second;
  // false where that does not come.
  bool receive_the_rest();
  [[nodiscard]] std::vector<Operation> open_receives() const;
  [[nodiscard]] std::vector<Operation> open_sends() const;
  // The messenger may still read and write the memory of these messages, which is never used again
  // from now on.
  void abandon_memory() { static_cast<void>(memory_.release()); }

 private:
  // How long a rank that lost its connection to a peer waits for the message that says why the
  // communicator has ended.
  static constexpr std::chrono::milliseconds kForTheReason{200};

  static constexpr int kAbortTag = 0;
  static constexpr int kCallTag = 1;
  static constexpr int kConfirmTag = 2;

  // Messages with the session of another communicator are ignored.
  struct CallMessage {
    std::uint64_t session = 0;
    std::int32_t rank = 0;
    Signature call;
  };
  struct ConfirmMessage {
    std::uint64_t session = 0;
    std::int32_t rank = 0;
    std::uint64_t sequence = 0;
  };
  // All memory that the messenger reads and writes.
  struct Memory {
    AbortMessage received_abort;
    AbortMessage sent_abort;
    CallMessage received_call;
    CallMessage sent_call;
    ConfirmMessage received_confirmation;
    ConfirmMessage sent_confirmation;
  };

  void receive_call();
  void receive_confirmation();
  void send_call(int peer, const Signature& call);
  bool receive_what_is_expected();

  Messenger& messenger_;
  AbortBoard& board_;
  std::vector<int> ranks_elsewhere_;
  std::uint64_t session_;
  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
  Operation receiving_abort_;
  Operation receiving_call_;
  Operation receiving_confirmation_;
  std::vector<Operation> sending_aborts_;
  bool announced_ = false;
  Operation sending_call_;
  int told_peer_ = kAnyPeer;  // to whom the last call was sent
  std::vector<std::optional<Signature>> told_calls_;
  std::vector<Operation> sending_confirmations_;  // to ranks_elsewhere_, in their order
  // Indexed by rank: one more than the number of the last call that the rank has confirmed, and of
  // the last that it will confirm.
  std::vector<std::uint64_t> confirmed_calls_;
  std::vector<std::uint64_t> expected_calls_;
};

}  // namespace rondo::detail
