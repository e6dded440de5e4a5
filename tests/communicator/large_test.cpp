// A vector of more elements than an int can count, between ranks of one process.

#include "tests/support/large_check.hpp"
#include "tests/support/ranks.hpp"

namespace rondo::test {
namespace {

TEST(Large, CountsBeyondTwoToTheThirtyOne) {
  constexpr std::uint64_t kNeededKib = 6U << 20U;
  if (available_kib() < kNeededKib) {
    GTEST_SKIP() << "needs 6 GiB of memory, " << available_kib() / 1024 << " MiB are available";
  }
  run_ranks(2, {}, check_beyond_int);
}

}  // namespace
}  // namespace rondo::test
