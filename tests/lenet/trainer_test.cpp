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

struct How {
  std::size_t batch_size = 64;
  rondo::Algorithm algorithm = rondo::Algorithm::ring;
  int epochs = 2;
  int passes = 1;
  bool reducer = true;  // else one all_reduce after backprop
  rondo::GradientOptions gradients = {};
};

Exchange make_exchange(rondo::Communicator& comm, ParameterBlock& gradients, const How& how) {
  if (!how.reducer) {
    return exchange_by([&comm](std::span<float> all) { comm.all_reduce(all); }, gradients);
  }
  rondo::GradientOptions options = how.gradients;
  options.average = rondo::Average::sum;
  if (options.bucket_bytes == 0) options.bucket_bytes = std::size_t{32} << 10U;
  return exchange_by(std::make_shared<rondo::GradientReducer>(comm, reducible(gradients), options));
}

Outcome train(int ranks, const How& how) {
  std::mutex mutex;
  std::set<std::uint64_t> hashes;
  Outcome outcome;
  rondo::test::run_ranks(ranks, {.algorithm = how.algorithm}, [&](rondo::Communicator& comm) {
    const TrainingOptions options{
        .batch_size = how.batch_size, .rate = 0.05F, .seed = 3, .passes = how.passes};
    const auto learner = make_cpu_learner(
        dataset(), options, {comm.rank(), comm.size()},
        [&](ParameterBlock& gradients) { return make_exchange(comm, gradients, how); });
    Trainer trainer(comm, dataset(), options, *learner);
    EpochResult result;
    for (int epoch = 1; epoch <= how.epochs; ++epoch) {
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
  const Outcome one = train(1, {});
  for (const rondo::Algorithm algorithm : {rondo::Algorithm::ring, rondo::Algorithm::naive}) {
    for (const int ranks : {2, 3}) {
      const Outcome many = train(ranks, {.algorithm = algorithm});
      EXPECT_NEAR(many.loss, one.loss, 1e-5);
      EXPECT_NEAR(many.test_accuracy, one.test_accuracy, 1e-9);
      for (std::size_t i = 0; i < one.parameters.size(); ++i) {
        ASSERT_NEAR(many.parameters[i], one.parameters[i], 1e-5) << ranks << " ranks, value " << i;
      }
    }
  }
}

TEST(Trainer, TheSameRunGivesTheSameBits) {
  EXPECT_EQ(train(2, {.batch_size = 50}).hash, train(2, {.batch_size = 50}).hash);
}

// With overlap or without, in one call or in buckets of any size, the bits are equal: the sum of two gradients has only
// one order.
TEST(Trainer, OverlapLeavesTheBitsAsTheyAre) {
  const std::uint64_t hash = train(2, {.reducer = false}).hash;
  for (const bool overlap : {true, false}) {
    for (const std::size_t bucket_bytes : {1U, 8192U, 1U << 20U}) {
      rondo::GradientOptions gradients;
      gradients.overlap = overlap;
      gradients.bucket_bytes = bucket_bytes;
      EXPECT_EQ(train(2, {.gradients = gradients}).hash, hash) << bucket_bytes;
    }
  }
}

TEST(Trainer, SeveralPassesAddUpToOne) {
  const Outcome one = train(2, {});
  for (const int passes : {2, 3, 40}) {  // the last leaves some passes without samples
    const Outcome many = train(2, {.passes = passes});
    EXPECT_NEAR(many.loss, one.loss, 1e-5) << passes;
    for (std::size_t i = 0; i < one.parameters.size(); ++i) {
      ASSERT_NEAR(many.parameters[i], one.parameters[i], 1e-5) << passes << " passes, value " << i;
    }
  }
}

TEST(Trainer, LearnsWithGradientsOf16BitsOnTheWire) {
  const Outcome exact = train(2, {});
  for (const rondo::WireType wire : {rondo::WireType::bf16, rondo::WireType::f16}) {
    rondo::GradientOptions gradients;
    gradients.wire = wire;
    const Outcome narrow = train(2, {.gradients = gradients});
    EXPECT_NE(narrow.hash, exact.hash);
    EXPECT_NEAR(narrow.loss, exact.loss, 1e-2);
  }
}

TEST(Trainer, AMinibatchMayBeSmallerThanTheRanks) {
  const Outcome one = train(1, {.batch_size = 2, .epochs = 1});
  const Outcome three = train(3, {.batch_size = 2, .epochs = 1});
  EXPECT_NEAR(three.loss, one.loss, 1e-4);
}

TEST(Trainer, ParametersThatDivergeAreNoticed) {
  rondo::test::run_ranks(2, {}, [](rondo::Communicator& comm) {
    const auto learner = make_cpu_learner(dataset(), {}, {comm.rank(), comm.size()},
                                          [](ParameterBlock&) { return Exchange(); });
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
