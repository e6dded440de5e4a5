// Which ranges are free.

#include <vector>

#include <gtest/gtest.h>

#include "bench/exact_values.hpp"
#include "memory/free_ranges.hpp"

namespace rondo::detail {
namespace {

TEST(FreeRanges, TakesTheSmallestThatHoldsEnough) {
  FreeRanges free;
  EXPECT_EQ(free.take(1, 1), std::nullopt);
  EXPECT_EQ(free.take_of_largest(10), std::nullopt);
  free.add({0, 100});
  free.add({200, 30});
  free.add({300, 50});
  EXPECT_EQ(free.bytes(), 180U);
  EXPECT_EQ(free.take(30, 1), 200U);
  EXPECT_EQ(free.take(31, 1), 300U);
  EXPECT_EQ(free.take(20, 1), 0U) << "of 331 to 350 there are only 19";
  EXPECT_EQ(free.bytes(), 99U);
  EXPECT_EQ(free.take_of_largest(30), (ByteRange{70, 30}));
  EXPECT_EQ(free.take_of_largest(1000), (ByteRange{20, 50}));
  EXPECT_EQ(free.take(20, 1), std::nullopt);
}

TEST(FreeRanges, AlignsAndKeepsWhatIsBefore) {
  FreeRanges free;
  free.add({10, 100});
  EXPECT_EQ(free.take(20, 64), 64U);
  EXPECT_EQ(free.take(60, 1), std::nullopt) << "54 before and 26 after are left";
  EXPECT_EQ(free.take(54, 1), 10U);
  EXPECT_EQ(free.take(26, 1), 84U);
}

// Against a table of single bytes.
TEST(FreeRanges, NeighboursBecomeOneInAnyOrder) {
  constexpr std::size_t kBytes = 500;
  FreeRanges free;
  std::vector<bool> is_free(kBytes, true);
  free.add({0, kBytes});
  std::vector<ByteRange> taken;
  for (std::uint64_t turn = 0; turn < 20'000; ++turn) {
    const std::uint64_t dice = exact::mix(turn);
    if (dice % 2 == 0 || taken.empty()) {
      const std::size_t bytes = 1 + dice / 2 % 40;
      const std::size_t alignment = std::size_t{1} << dice / 128 % 5;
      const auto offset = free.take(bytes, alignment);
      bool exists = false;
      for (std::size_t begin = 0; begin + bytes <= kBytes; begin += alignment) {
        bool all = true;
        for (std::size_t i = begin; i < begin + bytes; ++i) all = all && is_free[i];
        exists = exists || all;
      }
      ASSERT_EQ(offset.has_value(), exists) << turn;
      if (!offset) continue;
      ASSERT_EQ(*offset % alignment, 0U);
      for (std::size_t i = *offset; i < *offset + bytes; ++i) {
        ASSERT_TRUE(is_free[i]) << turn;
        is_free[i] = false;
      }
      taken.push_back({*offset, bytes});
    } else {
      const std::size_t which = dice / 2 % taken.size();
      free.add(taken[which]);
      for (std::size_t i = taken[which].offset; i < taken[which].end(); ++i) is_free[i] = true;
      taken[which] = taken.back();
      taken.pop_back();
    }
  }
  for (const ByteRange& range : taken) free.add(range);
  EXPECT_EQ(free.take_of_largest(kBytes), (ByteRange{0, kBytes}));
}

}  // namespace
}  // namespace rondo::detail
