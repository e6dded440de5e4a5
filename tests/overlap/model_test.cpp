// The figures of rondo-overlap and of rondo-systems --measure-overlap, from cases that are worked
// out by hand.

#include "bench/overlap/files.hpp"

#include <numeric>

#include <gtest/gtest.h>

#include "tools/overlap/figures.hpp"

namespace rondo::overlap {
namespace {

TEST(ResNet50, HasItsSizes) {
  const Model model = resnet50();
  EXPECT_EQ(model.size(), 161U);
  EXPECT_EQ(std::accumulate(model.begin(), model.end(), std::size_t{0},
                            [](std::size_t sum, const Tensor& t) { return sum + t.count; }),
            25'557'032U);
  const double work = std::accumulate(model.begin(), model.end(), 0.0,
                                      [](double sum, const Tensor& t) { return sum + t.work; });
  EXPECT_NEAR(work / 1e9, 4.1, 0.1) << "4.1 G multiply-adds";
}

TEST(ReadyTimes, GoBackwardsAndEndWithTheComputation) {
  const Model model = {{"a", 1, 1}, {"b", 1, 2}, {"c", 1, 5}};
  EXPECT_EQ(ready_times(model, 80), (std::vector<double>{80, 70, 50}));
}

TEST(Hidden, IsWhatOfTheCommunicationTakesNoTime) {
  EXPECT_DOUBLE_EQ(figures_of(100, 140, 100).hidden, 1);
  EXPECT_DOUBLE_EQ(figures_of(100, 140, 130).hidden, 0.25);
  EXPECT_DOUBLE_EQ(figures_of(100, 140, 150).hidden, -0.25);
  EXPECT_DOUBLE_EQ(figures_of(100, 140, 150).communication_us, 40);
}

// Backprop takes 100 and all communication 40. The first bucket, three quarters of it, is sent as
// soon as it is ready; the second is ready only at the end, so its 10 cannot be hidden.
TEST(MostHidden, FollowsTheReadyTimes) {
  EXPECT_DOUBLE_EQ(most_hidden({{20, 300}, {100, 100}}, {100, 40, 0}), 0.75);
  // If both buckets are ready only at the end, nothing is hidden; if both are ready in time,
  // everything is.
  EXPECT_DOUBLE_EQ(most_hidden({{100, 300}, {100, 100}}, {100, 40, 0}), 0);
  EXPECT_DOUBLE_EQ(most_hidden({{20, 300}, {60, 100}}, {100, 40, 0}), 1);
  // The second waits for the first: 80 + 30 + 10 = 120, so 20 are not hidden.
  EXPECT_DOUBLE_EQ(most_hidden({{80, 300}, {90, 100}}, {100, 40, 0}), 0.5);
}

TEST(Spread, HasNineOfTen) {
  std::vector<double> times(101);
  std::iota(times.rbegin(), times.rend(), 0.0);
  const Spread spread = spread_of(times);
  EXPECT_EQ(spread.median, 50);
  EXPECT_EQ(spread.low, 5);
  EXPECT_EQ(spread.high, 95);
}

TEST(ReadModel, SaysWhatIsWrong) { EXPECT_THROW(read_model("/nowhere"), std::runtime_error); }

}  // namespace
}  // namespace rondo::overlap
