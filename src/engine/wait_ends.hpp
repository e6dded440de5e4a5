// What ends a wait before what is waited for has come: the communicator has ended, a rank of this host without which
// the call cannot end is gone, or a rank is in another call.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/failure.hpp"
#include "engine/wiring.hpp"

namespace rondo::detail {

// A rank that shares the segment and without which call number `sequence` cannot end: it has destroyed its communicator
// before that call, or its process has ended in it. A process that ended the call before is missed by nobody.
std::optional<Failure> find_missing_rank(const Wiring& wiring, std::uint64_t sequence);

class WaitEnds {
 public:
  explicit WaitEnds(Wiring& wiring) : wiring_(wiring) {}

  void begin_call(const Signature& signature) { signature_ = signature; }

  // As find_missing_rank, for `peer`, for which this rank waits, even if it had ended this call before its process
  // ended; for any rank of this host only if `everyone`.
  [[nodiscard]] std::optional<Failure> find_missing(int peer, bool everyone) const;

  // A rank that is in another call of this number. `at_rest`: nothing has moved of late.
  std::optional<Failure> find_other_call(int peer, bool at_rest);

 private:
  [[nodiscard]] std::optional<Failure> if_another(int rank, const Signature& call) const;
  std::optional<Failure> find_told_call(int peer);

  Wiring& wiring_;
  Signature signature_;
};

}  // namespace rondo::detail
