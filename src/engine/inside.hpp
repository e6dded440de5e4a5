// Reductions among the ranks of one host whose buffers the others cannot reach: through a stage, memory in the host's
// segment into which each rank copies a window of its data at a time, and from which the others read it.
//
// Some of the ranks are owners: the first of the host, as many as there are rails (topology/ring_order.hpp). In `reduce`
// each owner gets its chunk of the sum over the host's ranks; in `spread` all ranks get the chunks of all owners. Both go
// window by window: each rank writes its stage, all wait for all, then they read. A rank has two stages and takes them in
// turn, so that one wait in each window is enough: it writes the stage of window w again for window w + 2. By then all
// ranks have arrived at window w + 1, and a rank arrives there only after it has read the stages of window w.
//
// Example: four ranks, all of them owners, reduce 4000 elements in windows of 100 for each chunk. In the first window rank
// 2 copies elements 0-99, 1000-1099 and 3000-3099 into its stage. When all have done so, it reads 2000-2099 of the stages
// of ranks 0, 1 and 3, adds its own, and has the first tenth of its chunk. Meanwhile nobody has to wait for it: the next
// window goes through the other stages.
#pragma once

#include <cstdint>
#include <vector>

#include <rondo/call.hpp>
#include <rondo/chunk.hpp>

#include "carrier/presence.hpp"
#include "engine/failure.hpp"
#include "engine/waiter.hpp"
#include "engine/wiring.hpp"
#include "reduce/kernels.hpp"

namespace rondo::detail {

class Inside {
 public:
  Inside(Wiring& wiring, Waiter& waiter);

  // Whether this rank owns a chunk, and which.
  [[nodiscard]] bool owns() const { return index_ < owners_; }
  [[nodiscard]] Range chunk(const Call& call) const { return chunk_of(call, index_); }

  // Each returns false if it failed; failure() then says why. `meet` waits until all ranks of the host have entered the
  // call, with the same signature.
  bool meet(const Signature& signature);
  // Writes this rank's chunk of the call's output, if it is an owner.
  bool reduce(const Call& call, ReduceOp op);
  // Writes the others' chunks of the call's output.
  bool spread(const Call& call);
  [[nodiscard]] const Failure& failure() const { return failure_; }
  // In the call that met last.
  [[nodiscard]] std::uint64_t windows_done() const { return windows_ - windows_before_; }

 private:
  [[nodiscard]] Range chunk_of(const Call& call, int owner) const;
  // Elements `number * most` and following of a chunk, at most `most`.
  static Range slice_of(const Range& chunk, std::uint64_t number, std::uint64_t most);
  [[nodiscard]] std::byte* stage(int index) const;
  void fold_slice(const Call& call, ReduceOp op, const Range& slice, std::uint64_t window,
                  std::size_t in_stage);
  bool arrive();
  bool wait_failed(int rank, WaitResult result);
  [[nodiscard]] Presence& presence(int rank) const { return wiring_.links.segment->presence(rank); }

  Wiring& wiring_;
  Waiter& waiter_;
  CopyKernel copy_;
  int index_ = 0;                     // this rank's among those of its host
  int owners_ = 1;                    // of each host
  std::uint64_t windows_ = 0;         // at which this rank has arrived, on its communicator
  std::uint64_t windows_before_ = 0;  // before the call that met last
  std::vector<const std::byte*> ins_;
  Failure failure_;
};

}  // namespace rondo::detail
