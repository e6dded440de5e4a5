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
  const std::vector<RankPair> edges = schedule_edges({0, 2, 1, 3});
  EXPECT_EQ(edges, (std::vector<RankPair>{
                       {0, 2}, {2, 1}, {1, 3}, {3, 0}, {2, 0}, {1, 0}, {0, 1}, {0, 3}}));
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
