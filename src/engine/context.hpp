// What the algorithms of an engine stand on: a rank's wiring, how it waits, and what they share
// during a call.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <rondo/call.hpp>

#include "base/algorithm_set.hpp"
#include "engine/confirmation.hpp"
#include "engine/failure.hpp"
#include "engine/learned_stores.hpp"
#include "engine/touching.hpp"
#include "engine/waiter.hpp"
#include "engine/wiring.hpp"
#include "plan/plan.hpp"
#include "reduce/kernels.hpp"

namespace rondo::detail {

class Context {
 public:
  // Borrows the wiring.
  explicit Context(Wiring& wiring);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  void begin_call(const Call& call, const Signature& signature, std::chrono::milliseconds timeout);
  void begin_message(const Call& call, const Signature& signature,
                     std::chrono::milliseconds timeout);

  [[nodiscard]] Presence& presence(int rank) const { return wiring.links.segment->presence(rank); }
  // The calls' plan by the edges between all ranks; valid until the next call.
  [[nodiscard]] Plan plan(const Call& call, Algorithm algorithm) {
    return make_plan(call, algorithm, place_, kChunkGranuleBytes);
  }
  // Copies to memory of the segment that other ranks read next. The buffers do not overlap.
  void copy_to_others(std::byte* dst, const std::byte* src, std::size_t bytes) {
    copies_to_others_.write(bytes, [&](Stores stores) {
      (stores == Stores::cached ? copy_.cached : copy_.non_temporal)(dst, src, bytes);
    });
  }
  // Reserves what this rank uses of the segment in calls by `algorithm`, in the first of them.
  // Throws TransportError.
  void reserve_for(Algorithm algorithm);
  // Waits until what this rank has published is on its way to other hosts, since this thread stops
  // driving the pump then. Throws Failure.
  void drain();

  Wiring& wiring;
  Waiter waiter;
  Progress progress;  // of the call in progress
  Touching touching;
  Confirmation confirmation;
  LearnedStores sums_to_others;  // reductions whose results go to memory that others read next

 private:
  CopyKernel copy_ = vector_copy();
  LearnedStores copies_to_others_;
  std::vector<std::uint64_t> borders_;  // of the chunks of the call in progress: see RingPlace
  std::vector<int> in_rank_order_;      // all ranks
  RingPlace place_;
  AlgorithmSet reserved_;  // for which reserve_for() has done so
};

}  // namespace rondo::detail
