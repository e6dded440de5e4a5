// A plan's window and slices fit every FIFO that the call uses.

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "plan/plan.hpp"

namespace rondo::detail {
namespace {

constexpr Algorithm kWithFifos[] = {Algorithm::ring, Algorithm::naive,
                                    Algorithm::recursive_doubling};

TEST(Plan, NoWindowIsAsWideAsAnyFifoOnItsWay) {
  std::vector<int> ring(4);
  std::iota(ring.begin(), ring.end(), 0);
  std::vector<float> data(1 << 20);
  const Call call{.collective = Collective::all_reduce,
                  .in = data.data(),
                  .out = data.data(),
                  .count = data.size(),
                  .type = DataType::f32};
  for (const FifoGeometry& one : {FifoGeometry{4096, 64}, FifoGeometry{1024, 4}}) {
    for (const FifoGeometry& other : {FifoGeometry{1024, 16}, FifoGeometry{1024, 2}}) {
      const RingPlace place{0, 4, &ring, one, other};
      for (const Algorithm algorithm : kWithFifos) {
        const Plan plan = make_plan(call, algorithm, place, 64);
        EXPECT_LT(plan.slicing.window, one.slots) << name(algorithm);
        EXPECT_LE(plan.slicing.slice_elems * 4, one.slot_bytes) << name(algorithm);
        if (algorithm == Algorithm::ring) continue;
        EXPECT_LT(plan.slicing.window, other.slots) << name(algorithm);
        EXPECT_LE(plan.slicing.slice_elems * 4, other.slot_bytes) << name(algorithm);
      }
    }
  }
}

TEST(Plan, ExchangesOnSharedWiresKeepLittleUnderWay) {
  std::vector<int> ring = {0, 1, 2, 3};
  const FifoGeometry fifo{1024, 16};
  const auto window = [&](Collective collective, int size, bool has_pump, FifoGeometry pairs) {
    const Call call{.collective = collective, .count = 1 << 20, .type = DataType::f32};
    const RingPlace place{0, size, &ring, fifo, fifo, {pairs, pairs}, has_pump};
    return make_plan(call, Algorithm::pairwise, place, 64).slicing.window;
  };
  EXPECT_EQ(window(Collective::all_to_all, 4, true, fifo), 2U);
  EXPECT_EQ(window(Collective::all_to_all, 4, true, {1024, 2}), 1U);
  EXPECT_EQ(window(Collective::all_to_all, 4, false, fifo), 8U);
  EXPECT_EQ(window(Collective::all_to_all, 2, true, fifo), 8U);
  EXPECT_EQ(window(Collective::gather, 4, true, fifo), 8U);
}

TEST(Plan, ExchangesKeepLongLinksFull) {
  std::vector<int> ring = {0, 1, 2, 3};
  const FifoGeometry fifo{1024, 16};
  const auto window = [&](double latency_us) {
    const Call call{.collective = Collective::all_to_all, .count = 1 << 20, .type = DataType::f32};
    const RingPlace place{0, 4, &ring, fifo, fifo, {fifo, fifo}, true, LinkFacts{latency_us, 100}};
    return make_plan(call, Algorithm::pairwise, place, 64).slicing.window;
  };
  EXPECT_EQ(window(10), 2U);
  EXPECT_EQ(window(75), 5U);  // 15,000 bytes are under way, 3,072 for each slice of the window
  EXPECT_EQ(window(10000), 8U);
}

}  // namespace
}  // namespace rondo::detail
