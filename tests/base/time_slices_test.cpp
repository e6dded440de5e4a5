// How long the scheduler lets a thread run at a time, by what the thread asks for.

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>

#include <gtest/gtest.h>

#include "base/time_slices.hpp"
#include "tests/support/forked.hpp"

namespace rondo::detail {
namespace {

constexpr std::uint64_t kShortNs = 100'000;

// Of the calling thread; 0 where the kernel says nothing of that (before Linux 6.12).
std::uint64_t slice_ns() {
  // The first version of struct sched_attr (sched_setattr(2)), in words of 8 bytes.
  std::array<std::uint64_t, 6> attributes{};
  constexpr std::size_t kRuntime = 3;
  const auto known = ::syscall(SYS_sched_getattr, 0, attributes.data(), sizeof(attributes), 0);
  return known == 0 ? attributes[kRuntime] : 0;
}

TEST(TimeSlices, AreShortWhileBorrowedAndForGoodWhereTaken) {
  if (slice_ns() == 0) GTEST_SKIP() << "needs Linux 6.12, which tells how long time slices are";
  EXPECT_EQ(test::exit_code_of([] {
              const std::uint64_t usual_ns = slice_ns();
              if (usual_ns == kShortNs) return 1;
              borrow_short_slices();
              if (slice_ns() != kShortNs) return 2;
              give_back_short_slices();
              if (slice_ns() != usual_ns) return 3;
              take_short_slices();
              borrow_short_slices();
              give_back_short_slices();
              return slice_ns() == kShortNs ? 0 : 4;
            }),
            0);
}

TEST(TimeSlices, AreTheUsualOnesWhereTheEnvironmentSaysSo) {
  EXPECT_EQ(test::exit_code_of([] {
              const std::uint64_t usual_ns = slice_ns();
              ::setenv("RONDO_SHORT_SLICES", "0", 1);
              borrow_short_slices();
              if (slice_ns() != usual_ns) return 1;
              take_short_slices();
              return slice_ns() == usual_ns ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace rondo::detail
