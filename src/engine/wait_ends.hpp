// What ends a wait early: the communicator has ended, a rank of this host without which the call
// cannot end is gone, or a rank is in another call.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/failure.hpp"
#include "engine/wiring.hpp"

namespace rondo::detail {

// Finds a rank that shares the segment and without which call number `sequence` cannot end: it
// destroyed its communicator before that call, or its process ended before it had ended that call.
// A rank that had ended the call is not missing, even if its process has ended.
std::optional<Failure> find_missing_rank(const Wiring& wiring, std::uint64_t sequence);

// Returns the first rank of the communicator on another host of which this process knows that its
// process has ended, or that its host has vanished. It knows that by the connections between
// processes, whatever the carrier.
std::optional<Failure> find_gone_rank(const Wiring& wiring);

class WaitEnds {
 public:
  explicit WaitEnds(Wiring& wiring) : wiring_(wiring) {}

  void begin_call(const Signature& signature) {
    signature_ = signature;
    message_ = false;
  }
  // After begin_call: it was a message, which has no number among the calls of the communicator.
  void begin_message() { message_ = true; }

  // Checks `peer`, for which this rank waits: it is missing even if it had ended this call before
  // its process ended. Only if `everyone`, also checks all ranks of this host, by
  // find_missing_rank. `since`: when this wait began.
  [[nodiscard]] std::optional<Failure> find_missing(int peer, bool everyone,
                                                    Clock::time_point since) const;

  // Finds a rank whose call of this number is another one. `at_rest`: the wait is about to sleep,
  // as nothing has moved.
  std::optional<Failure> find_other_call(int peer, bool at_rest);

 private:
  // Finds a host of the communicator that has vanished, whatever rank is waited for; or the process
  // of `peer`, if it has ended and nothing more of it comes.
  [[nodiscard]] std::optional<Failure> find_gone(int peer, Clock::time_point since) const;
  [[nodiscard]] Failure first_of_end(const std::vector<HostWatch::Gone>& all,
                                     const HostWatch::Gone& end) const;
  // Whether `peer`, on another host, has destroyed its communicator, and nothing more of it comes.
  [[nodiscard]] bool has_left_elsewhere(int peer, Clock::time_point since) const;
  [[nodiscard]] std::optional<Failure> if_another(int rank, const Signature& call) const;
  std::optional<Failure> find_told_call(int peer);

  Wiring& wiring_;
  Signature signature_;
  bool message_ = false;
};

}  // namespace rondo::detail
