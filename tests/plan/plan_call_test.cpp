// Which algorithm a call takes, by what the call and its communicator ask for.

#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "plan/plan_call.hpp"
#include "plan/tuning.hpp"

namespace rondo::detail {
namespace {

struct Asked {
  Algorithm by_communicator = Algorithm::automatic;
  std::optional<Algorithm> by_call = std::nullopt;
  bool has_reachable_memory = false;
};

// On one host, for 4 KiB on 4 ranks, for which the tuning names naive, and direct where ranks reach
// each other's buffers.
PlannedCall plan_for(const Asked& asked) {
  const Tuning tuning = parse_tuning("shm 4 0 naive\nbuffers 4 0 direct\n", "the test's rules");
  const Tuned tuned(tuning, 4, std::nullopt);
  Offers offers = basic_offers(4);
  offers.of(Algorithm::recursive_doubling).most_bytes = kAnySize;
  if (asked.has_reachable_memory) offers.of(Algorithm::direct).most_bytes = kAnySize;
  HostCallPlace place;
  place.offers = &offers;
  place.algorithm = asked.by_communicator;
  place.tuned = &tuned;
  place.reaches_any = asked.has_reachable_memory;
  std::vector<float> data(1024);
  return plan_call({.collective = Collective::all_reduce,
                    .in = data.data(),
                    .out = data.data(),
                    .count = data.size(),
                    .type = DataType::f32,
                    .options = {.algorithm = asked.by_call}},
                   place);
}

TEST(PlanCall, TakesWhatTheTuningNames) { EXPECT_EQ(plan_for({}).algorithm, Algorithm::naive); }

TEST(PlanCall, TakesTheCommunicatorsAlgorithmAndTheRingWhereThatCannotCarryTheCall) {
  EXPECT_EQ(plan_for({Algorithm::recursive_doubling}).algorithm, Algorithm::recursive_doubling);
  EXPECT_EQ(plan_for({Algorithm::direct}).algorithm, Algorithm::ring);
}

TEST(PlanCall, ACallThatNamesAutomaticTakesWhatTheTuningNames) {
  for (const Algorithm communicator :
       {Algorithm::recursive_doubling, Algorithm::direct, Algorithm::automatic}) {
    EXPECT_EQ(plan_for({communicator, Algorithm::automatic}).algorithm, Algorithm::naive)
        << name(communicator);
  }
}

// All ranks with equal signatures must fall back alike, also where some of them name `automatic`.
TEST(PlanCall, WhatIsUsedWithoutReachableBuffersDependsOnTheCommunicatorAlone) {
  for (const auto& by_call : {std::optional<Algorithm>(), std::optional(Algorithm::automatic)}) {
    const PlannedCall direct = plan_for({Algorithm::direct, by_call, true});
    EXPECT_EQ(direct.algorithm, Algorithm::automatic);
    EXPECT_EQ(direct.fallback, Algorithm::ring);
    const PlannedCall tuned = plan_for({Algorithm::automatic, by_call, true});
    EXPECT_EQ(tuned.algorithm, Algorithm::automatic);
    EXPECT_EQ(tuned.fallback, Algorithm::naive);
  }
}

}  // namespace
}  // namespace rondo::detail
