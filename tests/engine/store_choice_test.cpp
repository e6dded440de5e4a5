// Which stores are used after what the copies took; the test supplies the times.

#include <cstddef>

#include <gtest/gtest.h>

#include "engine/store_choice.hpp"

namespace rondo::detail {
namespace {

constexpr std::size_t kBytes = std::size_t{64} << 10U;

// What a copy of kBytes takes by each of the stores.
struct Machine {
  double cached_ns = 0;
  double non_temporal_ns = 0;

  [[nodiscard]] double ns(Stores stores) const {
    return stores == Stores::cached ? cached_ns : non_temporal_ns;
  }
};
// Cores that share a cache, and cores that do not.
constexpr Machine kNear{7000, 4000};
constexpr Machine kFar{28000, 2000};

// Makes copies. Returns how many went by non-temporal stores.
int copies(StoreChoice& choice, const Machine& machine, int count) {
  int non_temporal = 0;
  for (int i = 0; i < count; ++i) {
    const StoreChoice::Next next = choice.next(kBytes);
    if (next.is_measured) choice.note(kBytes, machine.ns(next.stores));
    non_temporal += next.stores == Stores::non_temporal ? 1 : 0;
  }
  return non_temporal;
}

TEST(StoreChoice, FindsTheFasterStoresSoonAndSeldomTriesTheOthers) {
  StoreChoice near;
  EXPECT_GT(copies(near, kNear, 32), 0);
  EXPECT_LT(copies(near, kNear, 10000), 100);
  StoreChoice far;
  copies(far, kFar, 32);
  EXPECT_GT(copies(far, kFar, 10000), 9900);
}

TEST(StoreChoice, NoticesThatTheCoresHaveMoved) {
  StoreChoice choice;
  copies(choice, kNear, 1000);
  copies(choice, kFar, 200);
  EXPECT_EQ(copies(choice, kFar, 100), 100);
  copies(choice, kNear, 200);
  EXPECT_EQ(copies(choice, kNear, 100), 0);
}

// Each pair of measured copies counts by its shorter one.
TEST(StoreChoice, ForgivesAnInterruption) {
  StoreChoice choice;
  copies(choice, kNear, 200);
  int measured = 0;
  for (int i = 0; i < 640; ++i) {
    const StoreChoice::Next next = choice.next(kBytes);
    EXPECT_EQ(next.stores, Stores::cached) << i;
    if (next.is_measured) choice.note(kBytes, ++measured % 2 == 0 ? 1e6 : kNear.cached_ns);
  }
  EXPECT_GE(measured, 40);
}

TEST(StoreChoice, LearnsOfEachSizeForItself) {
  StoreChoice choice;
  copies(choice, kFar, 1000);
  EXPECT_EQ(choice.next(4 * kBytes).stores, Stores::cached);
  EXPECT_EQ(choice.next(kBytes).stores, Stores::non_temporal);
}

TEST(StoreChoice, LeavesShortCopiesAlone) {
  StoreChoice choice;
  for (int i = 0; i < 10000; ++i) {
    const StoreChoice::Next next = choice.next(StoreChoice::kLeastBytes - 1);
    EXPECT_TRUE(next.stores == Stores::cached && !next.is_measured);
  }
}

}  // namespace
}  // namespace rondo::detail
