// How a rank learns that all others made the same broadcast or reduce.
//
// In the chain of a broadcast or a reduce, and where they go by naive, a rank may be through with its part before
// others have begun theirs. One rank has heard of all others when it is through: it confirms the call, in the memory
// that it shares with other ranks and by a message to each rank that does not share it. No rank ends its next
// broadcast or reduce before the last one is confirmed, so that it is told of a difference in that call at the
// latest. All other calls need something of every rank, and so confirm what was before them.
//
// Four ranks broadcast from rank 0, then from rank 1. Rank 3 is last in the first chain, 0 → 1 → 2 → 3, and confirms
// it. Rank 2 has sent the data of the first on to rank 3, and takes those of the second from rank 1; it ends the
// second only when rank 3 has ended the first.
#pragma once

#include <chrono>
#include <optional>

#include "engine/failure.hpp"
#include "engine/waiter.hpp"
#include "engine/wiring.hpp"
#include "schedule/schedule.hpp"

namespace rondo::detail {

class Confirmation {
 public:
  explicit Confirmation(Wiring& wiring) : wiring_(wiring) {}

  // After a call that needed something of every rank: nothing before it is open.
  void forget() { open_.reset(); }

  // A call that this rank has ended, and why it is not confirmed.
  struct Unconfirmed {
    Signature call;
    Failure failure;
  };
  // After this rank's part of a call by `schedule`: waits until the broadcast or reduce before it is confirmed.
  std::optional<Unconfirmed> confirm_before(const Schedule& schedule, const Signature& signature,
                                            Waiter& waiter);
  // Before the communicator is destroyed: waits until the last call is confirmed, somebody has ended the
  // communicator, a rank has left or ended without that call, or its timeout has passed. Throws TransportError.
  std::optional<Unconfirmed> confirm_last();

 private:
  // A broadcast or reduce that this rank has ended, and that may not be confirmed yet.
  struct Open {
    Signature call;
    std::chrono::milliseconds timeout{};
    int confirmer = 0;        // the rank that confirms it
    bool by_message = false;  // since it does not share this one's memory
  };

  void confirm(std::uint64_t sequence);
  bool look_for_confirmation();

  Wiring& wiring_;
  std::optional<Open> open_;
};

}  // namespace rondo::detail
