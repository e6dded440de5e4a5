// Ranks whose threads round in other ways, or take small numbers for zero, get the same bits as the
// others, and keep their state.

#include <cfenv>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

#include "base/float_state.hpp"
#include "tests/support/ranks.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace rondo::test {
namespace {

constexpr std::size_t kCount = 5000;

// Small enough for subnormal products and sums, and not a number of few bits.
template <class T>
T value_of(std::size_t i, int rank) {
  const double value =
      (1 + 1.0 / (3 + static_cast<double>(i) + rank)) * (i % 3 == 0 ? 1e-39 : 1.0 / (7 + rank));
  return static_cast<T>(static_cast<float>(value));
}

std::uint64_t state() {
#if defined(__x86_64__)
  return _mm_getcsr();
#elif defined(__aarch64__)
  std::uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return control;
#else
  return static_cast<std::uint64_t>(std::fegetround());
#endif
}

// Rank 1's thread rounds up, and takes subnormal numbers for zero; on x86 it stops at every
// exception, too.
void set_an_odd_state() {
  std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
  _mm_setcsr((_mm_getcsr() | 0x8040U) &
             ~0x1A80U);  // no masks of divisions by zero, invalid and overflow
#elif defined(__aarch64__)
  std::uint64_t control = state();
  control |= std::uint64_t{1} << 24U;  // takes subnormal numbers for zero
  asm volatile("msr fpcr, %0" : : "r"(control));
#endif
}

void set_the_usual_state() {
  std::fesetround(FE_TONEAREST);
#if defined(__x86_64__)
  _mm_setcsr(0x1F80);
#elif defined(__aarch64__)
  asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{0}));
#endif
}

template <class T>
void expect_equal_bits(Algorithm algorithm, ReduceOp op) {
  std::vector<std::vector<T>> results(4, std::vector<T>(kCount));
  run_ranks(4, {}, [&](Communicator& comm) {
    std::vector<T>& mine = results[static_cast<std::size_t>(comm.rank())];
    for (std::size_t i = 0; i < kCount; ++i) mine[i] = value_of<T>(i, comm.rank());
    if (comm.rank() == 1) set_an_odd_state();
    const std::uint64_t before = state();
    const std::size_t count = algorithm == Algorithm::one_shot ? 64 : kCount;
    comm.all_reduce(std::span(mine).first(count), op, {.algorithm = algorithm});
    EXPECT_EQ(state(), before);
    set_the_usual_state();
  });
  const std::size_t compared = algorithm == Algorithm::one_shot ? 64 : kCount;
  for (std::size_t rank = 1; rank < 4; ++rank) {
    for (std::size_t i = 0; i < compared; ++i) {
      // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the bits are what is compared
      ASSERT_EQ(std::memcmp(&results[rank][i], &results[0][i], sizeof(T)), 0)
          << name(kDataTypeOf<T>) << " " << name(op) << " by " << name(algorithm) << ", element "
          << i;
    }
  }
}

TEST(FloatState, OfOneRankDoesNotChangeItsBits) {
  for (const Algorithm algorithm :
       {Algorithm::one_shot, Algorithm::direct, Algorithm::ring, Algorithm::naive}) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::avg}) {
      expect_equal_bits<float>(algorithm, op);
      expect_equal_bits<double>(algorithm, op);
      expect_equal_bits<Float16>(algorithm, op);
      expect_equal_bits<BFloat16>(algorithm, op);
    }
  }
}

// The sums are those of the usual state, not just equal.
TEST(FloatState, OfAllRanksIsTheUsualOneInCalls) {
  std::vector<float> expected(kCount);
  for (std::size_t i = 0; i < kCount; ++i)
    expected[i] = value_of<float>(i, 0) + value_of<float>(i, 1);
  run_ranks(2, {}, [&](Communicator& comm) {
    std::vector<float> data(kCount);
    for (std::size_t i = 0; i < kCount; ++i) data[i] = value_of<float>(i, comm.rank());
    set_an_odd_state();
    comm.all_reduce(data, ReduceOp::sum, {.algorithm = Algorithm::direct});
    set_the_usual_state();
    EXPECT_EQ(data, expected);
  });
}

#if defined(__x86_64__)
// So many calls that ranks measure what their writes take. A floating-point operation whose result
// is rounded would end the process.
TEST(FloatState, IsNotUsedByCallsOfIntegers) {
  run_ranks(2, {}, [&](Communicator& comm) {
    std::vector<int> data(kCount);
    for (const Algorithm algorithm : {Algorithm::one_shot, Algorithm::direct, Algorithm::ring}) {
      for (int call = 0; call < 50; ++call) {
        std::vector<int> values(kCount, call + comm.rank());
        _mm_setcsr(0);  // no exception is masked, and none has occurred
        comm.all_reduce(std::span<const int>(values), data, ReduceOp::sum,
                        {.algorithm = algorithm});
        const std::uint64_t after = state();
        set_the_usual_state();
        EXPECT_EQ(after, 0U) << name(algorithm);
        EXPECT_EQ(data, std::vector<int>(kCount, 2 * call + 1));
      }
    }
  });
}
#endif

}  // namespace
}  // namespace rondo::test
