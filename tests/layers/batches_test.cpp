// Samples of any size, and which of them a rank sees.

#include "examples/layers/batches.hpp"

#include <cstdint>
#include <numeric>
#include <set>
#include <span>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace lenet {
namespace {

TEST(Samples, OfBytesAreNumbersUpToOne) {
  const Samples samples = samples_of_bytes(2, {0, 255, 51, 102, 1, 2}, {7, 8, 9});
  ASSERT_EQ(samples.count(), 3U);
  std::vector<float> numbers(2);
  samples.read_input(1, numbers);
  EXPECT_EQ(numbers, (std::vector<float>{51.0F / 255.0F, 102.0F / 255.0F}));
}

TEST(Samples, AreReadIntoABatchInTheOrderThatIsAskedFor) {
  Samples samples = samples_of_floats(2, {1, 2, 3, 4, 5, 6}, {7, 8, 9});
  samples.keep_first(5);
  EXPECT_EQ(samples.count(), 3U);
  Batch batch;
  batch.load(samples, std::vector<std::uint32_t>{2, 0});
  EXPECT_EQ(batch.inputs, (std::vector<float>{5, 6, 1, 2}));
  EXPECT_EQ(batch.labels, (std::vector<std::uint8_t>{9, 7}));
  samples.keep_first(1);
  EXPECT_EQ(samples.count(), 1U);
}

// As the documents split 4×5 numbers into twice 2×5.
TEST(Share, OfAMinibatchIsHalfOfItOnEachOfTwoRanks) {
  std::vector<float> numbers(20);
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  const Samples samples = samples_of_floats(5, numbers, {0, 1, 2, 3});
  const std::vector<std::uint32_t> order{0, 1, 2, 3};
  for (const int rank : {0, 1}) {
    Batch half;
    half.load(samples, share(order, rank, 2));
    const auto own =
        std::span<const float>(numbers).subspan(static_cast<std::size_t>(rank) * 10, 10);
    EXPECT_EQ(half.inputs, (std::vector<float>(own.begin(), own.end())));
    EXPECT_EQ(half.labels.size(), 2U);
  }
}

TEST(Share, OfAllRanksAreTheWholeInOrder) {
  std::vector<std::uint32_t> order(23);
  std::iota(order.begin(), order.end(), 100U);
  const std::vector<double> proportion{3, 0, 1.5};
  std::vector<std::uint32_t> equal;
  std::vector<std::uint32_t> proportional;
  for (const int rank : {0, 1, 2}) {
    const auto mine = share(order, rank, 3);
    EXPECT_TRUE(mine.size() == 7 || mine.size() == 8) << mine.size();
    equal.insert(equal.end(), mine.begin(), mine.end());
    const auto dealt = share(order, proportion, rank);
    proportional.insert(proportional.end(), dealt.begin(), dealt.end());
    EXPECT_NEAR(static_cast<double>(dealt.size()),
                23 * proportion[static_cast<std::size_t>(rank)] / 4.5, 1);
  }
  EXPECT_EQ(equal, order);
  EXPECT_EQ(proportional, order);
}

TEST(Samples, OfTooFewNumbersAreRefused) {
  EXPECT_THROW(samples_of_floats(2, {1, 2, 3}, {0, 1}), std::invalid_argument);
  EXPECT_THROW(samples_of_bytes(2, {1, 2}, {0, 1}), std::invalid_argument);
}

TEST(Batches, AnEpochsOrderIsAPermutationThatDependsOnSeedAndEpoch) {
  const std::vector<std::uint32_t> order = shuffled(1000, 7, 1);
  EXPECT_EQ(std::set<std::uint32_t>(order.begin(), order.end()).size(), 1000U);
  EXPECT_EQ(order, shuffled(1000, 7, 1));
  EXPECT_NE(order, shuffled(1000, 7, 2));
  EXPECT_NE(order, shuffled(1000, 8, 1));
}

TEST(Batches, SharesInProportionCoverTheMinibatch) {
  const std::vector<std::uint32_t> order = shuffled(1000, 1, 1);
  for (const std::vector<double>& shares :
       {std::vector<double>{3, 1},
        {1, 1, 1},
        {0, 5, 0},
        {0.3, 1e-7, 12},
        {9007199254740992, 0, 0, 0, 1.25, 1.25, 0, 0, 9007199254740998}}) {
    for (std::size_t count = 0; count < 70; ++count) {
      std::vector<std::uint32_t> together;
      const auto samples = std::span(order).first(count);
      for (std::size_t rank = 0; rank < shares.size(); ++rank) {
        const auto part = share(samples, shares, static_cast<int>(rank));
        const double exact =
            static_cast<double>(count) * shares[rank] / std::reduce(shares.begin(), shares.end());
        EXPECT_NEAR(static_cast<double>(part.size()), exact, 1);
        together.insert(together.end(), part.begin(), part.end());
      }
      EXPECT_EQ(together, std::vector<std::uint32_t>(samples.begin(), samples.end()));
    }
  }
}

TEST(Batches, SharesCoverTheMinibatch) {
  const std::vector<std::uint32_t> order = shuffled(100, 1, 1);
  std::vector<std::uint32_t> together;
  for (int rank = 0; rank < 3; ++rank) {
    const auto part = share(minibatch(order, 1, 64), rank, 3);
    EXPECT_EQ(part.size(), 12U);
    together.insert(together.end(), part.begin(), part.end());
  }
  EXPECT_EQ(together, std::vector<std::uint32_t>(order.begin() + 64, order.end()));
}

}  // namespace
}  // namespace lenet
