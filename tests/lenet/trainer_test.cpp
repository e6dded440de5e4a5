// Data-parallel training: k ranks with batch B do the arithmetic of one rank with batch B.

#include "trainer.hpp"

#include <mutex>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "tests/lenet/bright_bars.hpp"
#include "tests/support/ranks.hpp"

namespace lenet {
namespace {

const Dataset& dataset() {
  static const Dataset kData{bright_bars(230, 1), bright_bars(101, 2)};
  return kData;
}

struct Outcome {
  std::vector<float> parameters;
  double loss = 0;
  double test_accuracy = 0;
  std::uint64_t hash = 0;
};

Outcome train(int ranks, std::size_t batch_size, rondo::Algorithm algorithm, int epochs = 2) {
  std::mutex mutex;
  std::set<std::uint64_t> hashes;
  Outcome outcome;
  rondo::test::run_ranks(ranks, {.algorithm = algorithm}, [&](rondo::Communicator& comm) {
    const TrainingOptions options{.batch_size = batch_size, .rate = 0.05F, .seed = 3};
    const auto learner =
        make_cpu_learner(dataset(), options, {comm.rank(), comm.size()},
                         [&](std::span<float> gradients) { comm.all_reduce(gradients); });
    Trainer trainer(comm, dataset(), options, *learner);
    EpochResult result;
    for (int epoch = 1; epoch <= epochs; ++epoch) {
      result = trainer.run_epoch(epoch, [](std::size_t, std::size_t) {});
    }
    const std::uint64_t hash = trainer.agreed_hash();
    const std::lock_guard lock(mutex);
    hashes.insert(hash);
    const ParameterBlock parameters = learner->parameters();
    outcome = {{parameters.all().begin(), parameters.all().end()},
               result.train_loss,
               result.test_accuracy,
               hash};
  });
  EXPECT_EQ(hashes.size(), 1U);
  return outcome;
}

// Minibatches of 64 leave one of 38, and neither 64 nor 38 divides by 3.
TEST(Trainer, TwoAndThreeRanksDoTheArithmeticOfOne) {
  const Outcome one = train(1, 64, rondo::Algorithm::ring);
  for (const rondo::Algorithm algorithm : {rondo::Algorithm::ring, rondo::Algorithm::naive}) {
    for (const int ranks : {2, 3}) {
      const Outcome many = train(ranks, 64, algorithm);
      EXPECT_NEAR(many.loss, one.loss, 1e-5);
      EXPECT_NEAR(many.test_accuracy, one.test_accuracy, 1e-9);
      for (std::size_t i = 0; i < one.parameters.size(); ++i) {
        ASSERT_NEAR(many.parameters[i], one.parameters[i], 1e-5) << ranks << " ranks, value " << i;
      }
    }
  }
}

TEST(Trainer, TheSameRunGivesTheSameBits) {
  EXPECT_EQ(train(2, 50, rondo::Algorithm::ring).hash, train(2, 50, rondo::Algorithm::ring).hash);
}

TEST(Trainer, AMinibatchMayBeSmallerThanTheRanks) {
  const Outcome one = train(1, 2, rondo::Algorithm::ring, 1);
  const Outcome three = train(3, 2, rondo::Algorithm::ring, 1);
  EXPECT_NEAR(three.loss, one.loss, 1e-4);
}

TEST(Trainer, ParametersThatDivergeAreNoticed) {
  rondo::test::run_ranks(2, {}, [](rondo::Communicator& comm) {
    const auto learner =
        make_cpu_learner(dataset(), {}, {comm.rank(), comm.size()}, [](std::span<float>) {});
    Trainer trainer(comm, dataset(), {}, *learner);
    ParameterBlock parameters = learner->parameters();
    EXPECT_EQ(trainer.agreed_hash(), hash_of(parameters));
    if (comm.rank() == 1) parameters.all()[70000] += 1.0F;
    learner->set_parameters(parameters);
    EXPECT_THROW(trainer.agreed_hash(), std::runtime_error);
  });
}

TEST(Batches, AnEpochsOrderIsAPermutationThatDependsOnSeedAndEpoch) {
  const std::vector<std::uint32_t> order = shuffled(1000, 7, 1);
  EXPECT_EQ(std::set<std::uint32_t>(order.begin(), order.end()).size(), 1000U);
  EXPECT_EQ(order, shuffled(1000, 7, 1));
  EXPECT_NE(order, shuffled(1000, 7, 2));
  EXPECT_NE(order, shuffled(1000, 8, 1));
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
