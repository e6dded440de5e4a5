// NaNs have the same bits on all ranks, also where partners between hosts add the same elements,
// each for itself.

#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

#include "reduce/one_nan.hpp"
#include "tests/support/collective_checks.hpp"
#include "tests/support/forked.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/ucx.hpp"

namespace rondo::test {
namespace {

// Half of the elements are NaNs of any sign and any bits, infinities and zeros among the rest.
template <class T>
std::vector<T> with_nans(int rank, std::size_t count) {
  std::mt19937_64 random(static_cast<unsigned>(rank + 1));
  std::vector<T> values(count);
  T infinity = T(std::numeric_limits<float>::infinity());
  for (T& value : values) {
    const std::uint64_t bits = random();
    std::memcpy(static_cast<void*>(&value), &infinity, sizeof(T));
    auto* bytes = reinterpret_cast<unsigned char*>(&value);
    if (bits % 4 == 0) value = T(0.0F);
    if (bits % 2 == 1)
      bytes[0] = static_cast<unsigned char>((bits >> 8U) | 1U);  // the lowest bits of a NaN
    if ((bits >> 16U) % 2 == 1) bytes[sizeof(T) - 1] |= 0x80U;
  }
  return values;
}

template <class T>
void expect_the_same_on_all(Communicator& comm, ReduceOp op, Algorithm algorithm,
                            std::size_t count = 1001) {
  std::vector<T> data = with_nans<T>(comm.rank(), count);
  comm.all_reduce(data, op, {.algorithm = algorithm});
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(data.data());
  const std::size_t size = count * sizeof(T);
  std::vector<std::uint8_t> all(size * static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::span(bytes, size), all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(all[i], all[i % size])
        << name(kDataTypeOf<T>) << " " << name(op) << " by " << name(algorithm) << ", rank "
        << i / size << ", element " << i % size / sizeof(T);
  }
}

class Nans : public testing::TestWithParam<int> {};

TEST_P(Nans, AreTheSameOnAllRanks) {
  if (const char* reason = reason_against_ucx()) GTEST_SKIP() << reason;
  const std::vector<int> codes = run_forked(GetParam(), [](const ForkedRank& me) {
    ::setenv("UCX_MEM_EVENTS", "no", 1);  // which address sanitizers do not endure
    CommunicatorOptions options;
    options.carrier = CarrierChoice::ucx;
    Communicator comm = from_store("unix://" + me.socket, me.rank, me.size, options);
    for_each_type_and_op([&]<class T>(ReduceOp op) {
      if constexpr (!std::is_integral_v<T>) {
        for (const Algorithm algorithm :
             {Algorithm::automatic, Algorithm::recursive_doubling, Algorithm::halving_doubling,
              Algorithm::ring, Algorithm::naive}) {
          expect_the_same_on_all<T>(comm, op, algorithm);
        }
      }
    });
    return ::testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(codes, std::vector<int>(static_cast<std::size_t>(GetParam()), 0));
}

TEST_P(Nans, AreTheSameOnAllRanksOfOneHost) {
  run_ranks(GetParam(), {}, [](Communicator& comm) {
    for_each_type_and_op([&]<class T>(ReduceOp op) {
      if constexpr (!std::is_integral_v<T>) {
        for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::direct, Algorithm::chain,
                                          Algorithm::ring, Algorithm::naive}) {
          expect_the_same_on_all<T>(comm, op, algorithm);
        }
        expect_the_same_on_all<T>(comm, op, Algorithm::one_shot, 64);
      }
    });
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Nans, testing::Values(2, 3, 5, 6));

template <class T>
void expect_alike(const std::vector<T>& before) {
  std::vector<T> after = before;
  detail::make_nans_alike(reinterpret_cast<std::byte*>(after.data()), kDataTypeOf<T>, after.size());
  std::vector<T> nans;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto value =
        static_cast<double>(static_cast<std::conditional_t<sizeof(T) == 2, float, T>>(before[i]));
    if (value != value) {
      nans.push_back(after[i]);
    } else {
      // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the bits are what is compared
      EXPECT_EQ(std::memcmp(&after[i], &before[i], sizeof(T)), 0) << i;
    }
  }
  ASSERT_GT(nans.size(), before.size() / 4);
  for (const T& nan : nans) {
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the bits are what is compared
    ASSERT_EQ(std::memcmp(&nan, nans.data(), sizeof(T)), 0);
  }
}

TEST(OneNan, StaysAndAllElseStaysAsItIs) {
  expect_alike(with_nans<Float16>(0, 1003));
  expect_alike(with_nans<BFloat16>(0, 1003));
  expect_alike(with_nans<float>(0, 1003));
  expect_alike(with_nans<double>(0, 1003));
}

}  // namespace
}  // namespace rondo::test
