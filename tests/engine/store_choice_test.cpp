// Which stores are used after what the writes took; the test supplies the times.

#include <cstddef>
#include <cstdint>

#include <gtest/gtest.h>

#include "engine/store_choice.hpp"

namespace rondo::detail {
namespace {

constexpr std::size_t kBytes = std::size_t{64} << 10U;

// What a write of kBytes takes by each of the stores.
struct Machine {
  std::uint64_t cached_ns = 0;
  std::uint64_t non_temporal_ns = 0;

  [[nodiscard]] std::uint64_t ns(Stores stores) const {
    return stores == Stores::cached ? cached_ns : non_temporal_ns;
  }
};
// Cores that share a cache, and cores that do not.
constexpr Machine kNear{7000, 4000};
constexpr Machine kFar{28000, 2000};

// Makes writes. Returns how many were made by non-temporal stores.
int non_temporal(StoreChoice& choice, const Machine& machine, int writes) {
  int found = 0;
  for (int i = 0; i < writes; ++i) {
    const StoreChoice::Next next = choice.next(kBytes);
    if (next.is_measured) choice.note(kBytes, machine.ns(next.stores));
    found += next.stores == Stores::non_temporal ? 1 : 0;
  }
  return found;
}

// The first trial, of four writes, comes after 17, and the next ones 1037 after the end of the one
// before.
TEST(StoreChoice, FindsTheFasterStoresSoonAndSeldomTriesTheOthers) {
  StoreChoice near;
  EXPECT_EQ(non_temporal(near, kNear, 17), 0);
  EXPECT_EQ(non_temporal(near, kNear, 4), 4);
  EXPECT_EQ(non_temporal(near, kNear, 1037), 0);
  EXPECT_EQ(non_temporal(near, kNear, 4), 4);
  EXPECT_EQ(non_temporal(near, kNear, 1037), 0);
  StoreChoice far;
  EXPECT_EQ(non_temporal(far, kFar, 17), 0);
  EXPECT_EQ(non_temporal(far, kFar, 4 + 1037), 4 + 1037);
  EXPECT_EQ(non_temporal(far, kFar, 4), 0);
  EXPECT_EQ(non_temporal(far, kFar, 1037), 1037);
}

TEST(StoreChoice, NoticesThatTheCoresHaveMoved) {
  StoreChoice choice;
  non_temporal(choice, kNear, 17 + 4);
  EXPECT_EQ(non_temporal(choice, kFar, 136), 0);
  EXPECT_EQ(non_temporal(choice, kFar, 4 + 136), 4 + 136);
  // There non-temporal stores take twice as long as before.
  EXPECT_EQ(non_temporal(choice, kNear, 17 + 4), 17);
  EXPECT_EQ(non_temporal(choice, kNear, 1037), 0);
}

TEST(StoreChoice, DoesNotChangeToWhatIsAsGood) {
  StoreChoice choice;
  const Machine alike{10000, 4300};  // and 5243 more for the reader
  non_temporal(choice, alike, 17 + 4);
  EXPECT_EQ(non_temporal(choice, alike, 1037), 0);
}

// Each pair of measured writes counts by its shorter one.
TEST(StoreChoice, ForgivesAnInterruption) {
  StoreChoice choice;
  non_temporal(choice, kNear, 17 + 4);
  int measured = 0;
  for (int i = 0; i < 1000; ++i) {
    const StoreChoice::Next next = choice.next(kBytes);
    EXPECT_EQ(next.stores, Stores::cached) << i;
    if (next.is_measured) choice.note(kBytes, ++measured % 2 == 0 ? 1'000'000 : kNear.cached_ns);
  }
  EXPECT_EQ(measured, 2 * (1000 / 17));
}

TEST(StoreChoice, LearnsOfEachSizeForItself) {
  StoreChoice choice;
  non_temporal(choice, kFar, 17 + 4);
  EXPECT_EQ(choice.next(4 * kBytes).stores, Stores::cached);
  EXPECT_EQ(choice.next(kBytes).stores, Stores::non_temporal);
}

TEST(StoreChoice, LeavesShortWritesAlone) {
  StoreChoice choice;
  for (int i = 0; i < 10000; ++i) {
    const StoreChoice::Next next = choice.next(StoreChoice::kLeastBytes - 1);
    EXPECT_TRUE(next.stores == Stores::cached && !next.is_measured);
  }
}

}  // namespace
}  // namespace rondo::detail
