#include "topology/ring_order.hpp"

#include <gtest/gtest.h>

#include <rondo/topology.hpp>

namespace rondo::detail {
namespace {

TEST(RingOrder, IsRankOrderOnOneHost) {
  EXPECT_EQ(ring_order({{"a", -1}, {"a", -1}, {"a", -1}}), (std::vector<int>{0, 1, 2}));
}

TEST(RingOrder, VisitsEachHostOnce) {
  EXPECT_EQ(ring_order({{"a", 0}, {"b", 0}, {"a", 0}, {"c", 0}, {"b", 0}, {"a", 0}}),
            (std::vector<int>{0, 2, 5, 1, 4, 3}));
}

TEST(RingOrder, VisitsEachNumaNodeOfAHostOnceAndStartsAtRankZero) {
  EXPECT_EQ(ring_order({{"a", 1}, {"a", 0}, {"a", 1}, {"a", 0}}), (std::vector<int>{0, 2, 1, 3}));
}

TEST(ScheduleEdges, AreTheRingAndTheStarWithoutRepetition) {
  const std::vector<ScheduleEdge> expected = {{{0, 2}, true},  {{2, 1}, true},  {{1, 3}, true},
                                              {{3, 0}, true},  {{2, 0}, false}, {{1, 0}, false},
                                              {{0, 1}, false}, {{0, 3}, false}};
  EXPECT_EQ(schedule_edges({0, 2, 1, 3}), expected);
  EXPECT_TRUE(schedule_edges({0}).empty());
}

TEST(Machine, KnowsItsCores) {
  const Machine machine = this_machine();
  EXPECT_GT(machine.cores, 0);
  EXPECT_FALSE(machine.host.empty());
  EXPECT_FALSE(machine.source.empty());
}

}  // namespace
}  // namespace rondo::detail
