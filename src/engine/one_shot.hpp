// Small collectives in one hop: every rank posts what it contributes in an outbox that all ranks of its host
// read, and takes what it needs from everyone's.
//
// The number of the call in an outbox says that it is complete, and lies in the same line as the signature
// and the first bytes, so the smallest calls cost one line each way. Reductions go in the order of ranks,
// so that all ranks get the same bits. Everyone waits for everyone, in rooted collectives too: outboxes
// alternate, and a rank posts call k + 2 in the outbox of call k only after it has ended call k + 1, for which
// it needed everyone's outbox of k + 1, and those a rank posts only after it has read all of call k.
#pragma once

#include <cstdint>

#include <rondo/call.hpp>

#include "engine/host_port.hpp"

namespace rondo::detail {

class OneShot {
 public:
  // `number`: of this one_shot call on its communicator, from 1.
  OneShot(Wiring& wiring, Waiter& waiter, const Call& call, const HostCall& host_call,
          std::uint64_t number);

  // Whether the call is done.
  bool run();
  [[nodiscard]] const Failure& failure() const { return failure_; }
  [[nodiscard]] const Progress& progress() const { return progress_; }

 private:
  [[nodiscard]] Range own_chunk() const;
  // What this rank posts, and where in the vector it lies.
  [[nodiscard]] Range posted(int rank) const;
  void post();
  bool wait_for(int rank);
  void take(int rank);
  [[nodiscard]] const std::byte* payload_of(int rank) const;

  Wiring& wiring_;
  Waiter& waiter_;
  const Call& call_;
  const HostCall& host_call_;
  std::uint64_t number_;
  CopyKernel copy_;
  Range wanted_;  // what this rank's output is made of
  Failure failure_;
  Progress progress_;
};

// Whether the ranks can carry out the call in this way.
bool fits_one_shot(const Offers& offers, const Call& call);

}  // namespace rondo::detail
