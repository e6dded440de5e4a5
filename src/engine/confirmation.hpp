// How a rank learns that all others made the same call with a root: broadcast, reduce, gather or
// scatter.
//
// In such a call, except by one_shot and direct, a rank may finish its part before other ranks have
// begun theirs. One rank, the confirmer, has received something from every other rank, directly or
// through others, when it finishes. It then confirms the call: in shared memory, and by a message
// to each rank that does not share that memory. No rank ends its next call with a root before the
// last one is confirmed, so if ranks made different calls, a rank learns it in its next call at the
// latest. All other collectives need something from every rank, and so confirm all calls before
// them; messages have nothing to do with all this.
//
// Example: four ranks broadcast from rank 0, then from rank 1. Rank 3 is last in the first chain, 0
// → 1 → 2 → 3, and confirms that call. Rank 2 sends the data of the first call on to rank 3 and
// receives those of the second from rank 1, but it ends the second call only when rank 3 has
// confirmed the first.
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

  // After a call that needed something from every rank: all calls before it are confirmed.
  void forget() { open_.reset(); }

  // After this rank's part of a call by `schedule`: waits until the last call with a root before it
  // is confirmed. Throws Failure, with that call.
  void confirm_before(const Schedule& schedule, const Signature& signature, Waiter& waiter);
  // Ending calls this before the communicator is destroyed. Waits until the last call is confirmed
  // or the communicator is aborted, and returns. Throws Failure, with that call, if a rank has left
  // or its process has ended without that call, or if the call's timeout has passed; and
  // TransportError. Returns at once, without knowing, if the confirmation would come by a message
  // and this thread may not use the network any more.
  void confirm_last();

 private:
  // A call with a root that this rank has ended, and that may not be confirmed yet.
  struct Open {
    Signature call;
    std::chrono::milliseconds timeout{};
    int confirmer = 0;        // the rank that confirms it
    bool by_message = false;  // the confirmer does not share this rank's memory
  };

  void confirm(std::uint64_t sequence);
  bool look_for_confirmation();

  Wiring& wiring_;
  std::optional<Open> open_;
};

}  // namespace rondo::detail
