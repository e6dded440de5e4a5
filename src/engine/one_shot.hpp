// Small collectives in one hop: every rank posts its contribution in its outbox, which all ranks of
// its host can read, and reads what it needs from the outboxes of the others.
//
// The call's number in an outbox shows that the outbox is complete. It lies in the same cache line
// as the signature and the first bytes, so the smallest calls cost one line each way. When all have
// come, every rank reduces in the order of ranks, rounding once, so all ranks get the same bits,
// and the same as by `direct`.
//
// Every rank waits for the outboxes of all ranks, in rooted collectives too, so that none is
// overwritten too early. Call k + 2 uses the outbox of call k. A rank posts call k + 2 only after
// it has ended call k + 1, in which it waited for all outboxes of call k + 1; and each rank posts
// call k + 1 only after it has ended its reads of call k.
#pragma once

#include <cstdint>
#include <vector>

#include <rondo/call.hpp>
#include <rondo/chunk.hpp>

#include "engine/context.hpp"
#include "reduce/kernels.hpp"

namespace rondo::detail {

class OneShot {
 public:
  explicit OneShot(Context& context);

  // Carries out a call. Throws Failure.
  void run(const Call& call, const Signature& signature);

 private:
  // The part of the vector that `rank` posts.
  [[nodiscard]] Range posted(const Call& call, int rank) const;
  void post(const Call& call, const Signature& signature);
  void wait_for(int rank, const Signature& signature);
  void copy_from(int rank, const Call& call);
  // `wanted`: the part of the vector that this rank outputs.
  void reduce(const Call& call, const Range& wanted);
  [[nodiscard]] const std::byte* contribution_of(int rank, const Call& call) const;

  Context& context_;
  Wiring& wiring_;
  CopyKernel copy_;
  LearnedCopy copy_to_outbox_;
  std::uint64_t number_ = 0;  // of this one_shot call on its communicator, from 1
  std::vector<const std::byte*> contributions_;  // by rank, of the call in progress
};

}  // namespace rondo::detail
