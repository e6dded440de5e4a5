// Small collectives in one hop: every rank posts its contribution in its outbox, which all ranks of its host can
// read, and reads what it needs from all outboxes.
//
// The call's number in an outbox shows that the outbox is complete. It lies in the same cache line as the signature
// and the first bytes, so the smallest calls cost one line each way. When all have come, every rank reduces in the order
// of ranks, rounding once, so all ranks get the same bits, and the same as by `direct`.
//
// Every rank waits for the outboxes of all ranks, in rooted collectives too, so that none is overwritten too early.
// Call k + 2 uses the outbox of call k. A rank posts call k + 2 only after it has ended call k + 1, in which it
// waited for all outboxes of call k + 1; and each rank posts call k + 1 only after it has ended its reads of call k.
#pragma once

#include <cstdint>
#include <span>

#include <rondo/call.hpp>
#include <rondo/chunk.hpp>

#include "engine/failure.hpp"
#include "engine/waiter.hpp"
#include "engine/wiring.hpp"
#include "reduce/kernels.hpp"

namespace rondo::detail {

class OneShot {
 public:
  // `contributions`: room for a pointer for each rank. `number`: of this one_shot call on its communicator, from 1.
  OneShot(Wiring& wiring, Waiter& waiter, const Call& call, const Signature& signature,
          std::span<const std::byte*> contributions, std::uint64_t number);

  // Carries out the call. False: it failed, and failure() says why.
  bool run();
  [[nodiscard]] const Failure& failure() const { return failure_; }
  [[nodiscard]] const Progress& progress() const { return progress_; }

 private:
  // The part of the vector that `rank` posts.
  [[nodiscard]] Range posted(int rank) const;
  void post();
  bool wait_for(int rank);
  void copy_from(int rank);
  void reduce();
  [[nodiscard]] const std::byte* payload_of(int rank) const;

  Wiring& wiring_;
  Waiter& waiter_;
  const Call& call_;
  const Signature& signature_;
  std::span<const std::byte*> contributions_;
  std::uint64_t number_;
  std::size_t element_bytes_;
  CopyKernel copy_;
  Range wanted_;  // the part of the vector that this rank outputs
  Failure failure_;
  Progress progress_;
};

// Whether the call's vector has at most `limit_bytes`, up to which there is memory for one_shot; 0: there is none.
inline bool fits_one_shot(std::size_t limit_bytes, const Call& call) {
  return limit_bytes > 0 && call.count <= limit_bytes / size_of(call.type);
}

}  // namespace rondo::detail
