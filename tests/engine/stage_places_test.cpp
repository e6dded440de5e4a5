// That passes which follow each other have different places in a stage.

#include <cstddef>
#include <iterator>
#include <random>

#include <gtest/gtest.h>

#include "engine/stage_places.hpp"

namespace rondo::detail {
namespace {

TEST(StagePlaces, ArePlacedOneAfterTheOther) {
  StagePlaces places;
  const std::size_t passes[] = {256, 192, 256, 192, 256, 0, 256};
  const std::size_t expected[] = {0, 256, 448, 704, 0, 256, 256};
  for (std::size_t i = 0; i < std::size(passes); ++i) {
    EXPECT_EQ(places.next(passes[i], 1024), expected[i]) << i;
  }
}

TEST(StagePlaces, DoNotOverlapThatOfTheLastPass) {
  std::mt19937 random(34);
  for (const std::size_t lines : {1U, 2U, 5U, 32U}) {  // of the largest pass
    const std::size_t stage_bytes = kStageParts * lines * 64;
    StagePlaces places;
    std::size_t last_begin = 0;
    std::size_t last_end = 0;
    for (int i = 0; i < 10000; ++i) {
      const bool is_full = random() % 4 == 0;
      const std::size_t bytes = (is_full ? lines : random() % (lines + 1)) * 64;
      const std::size_t begin = places.next(bytes, stage_bytes);
      ASSERT_LE(begin + bytes, stage_bytes) << i;
      ASSERT_TRUE(begin >= last_end || begin + bytes <= last_begin) << i;
      last_begin = begin;
      last_end = begin + bytes;
    }
  }
}

}  // namespace
}  // namespace rondo::detail
