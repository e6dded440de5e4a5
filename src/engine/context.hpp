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
  // What a rank learns of writing to slots in the segment: copies, sums, and sums that it writes to
  // its output as well.
  LearnedCopy copy_to_slot;
  LearnedStores sums_to_slot;
  LearnedStores sums_to_slot_and_output;

 private:
  std::vector<std::uint64_t> borders_;  // of the chunks of the call in progress: see RingPlace
  std::vector<std::uint64_t> received_borders_;
  std::vector<int> in_rank_order_;  // all ranks
  RingPlace place_;
  AlgorithmSet reserved_;  // for which reserve_for() has done so
};

}  // namespace rondo::detail
