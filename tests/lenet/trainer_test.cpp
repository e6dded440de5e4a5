// Data-parallel training: k ranks with batch B do the arithmetic of one rank with batch B.

#include "examples/lenet/trainer.hpp"

#include <chrono>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/lenet/paced_learner.hpp"
#include "tests/lenet/trained.hpp"

namespace lenet {
namespace {

// Minibatches of 64 leave one of 38, and neither 64 nor 38 divides by 3.
TEST(Trainer, TwoAndThreeRanksDoTheArithmeticOfOne) {
  const Outcome one = train(1, {});
  for (const rondo::Algorithm algorithm : {rondo::Algorithm::ring, rondo::Algorithm::naive}) {
    for (const int ranks : {2, 3}) {
      const Outcome many = train(ranks, {.algorithm = algorithm});
      expect_same(many, one, std::to_string(ranks) + " ranks");
      EXPECT_NEAR(many.test_accuracy, one.test_accuracy, 1e-9);
    }
  }
}

TEST(Trainer, SharesInAnyProportionDoTheArithmeticOfOneRank) {
  const Outcome one = train(1, {});
  for (const std::vector<double>& shares :
       {std::vector<double>{3, 1}, {0, 1}, {1, 2.5, 0.5}, {1e-9, 1, 1}}) {
    expect_same(train(static_cast<int>(shares.size()),
                      {.learner = {.batch_size = 64, .rate = 0.05F, .shares = shares}}),
                one, std::to_string(shares[0]) + " : " + std::to_string(shares[1]));
  }
}

// Rank 1 alone notices, and all ranks are told: by its loss, or by its parameters where its loss
// was still a number.
TEST(Trainer, ParametersThatAFloatDoesNotHoldEndTheTrainingOfAllRanks) {
  for (const bool loss : {true, false}) {
    rondo::test::run_ranks(3, {}, [&](rondo::Communicator& comm) {
      PacedLearner learner(comm.rank(), 0.001);
      if (comm.rank() == 1 && loss) learner.set_loss(std::numeric_limits<double>::quiet_NaN());
      const TrainingOptions options{.learner = {.batch_size = 64}};
      Updates updates(comm, learner);
      Trainer trainer(comm, dataset(), options, learner, updates);
      if (comm.rank() == 1 && !loss) {  // the trainer has given all ranks the same parameters
        ParameterBlock parameters = learner.parameters();
        parameters.all()[70000] = std::numeric_limits<float>::infinity();
        learner.set_parameters(parameters);
      }
      try {
        trainer.run_epoch(1, [](std::size_t, std::size_t) {});
        ADD_FAILURE() << "rank " << comm.rank() << " noticed nothing";
      } catch (const std::runtime_error& error) {
        EXPECT_NE(std::string(error.what()).find("in epoch 1 the parameters have grown"),
                  std::string::npos)
            << error.what();
      }
    });
  }
}

// Rank 1 has trained on nothing, so its moving averages count for nothing.
TEST(Trainer, MovingAveragesAreThoseOfAllSamples) {
  rondo::test::run_ranks(3, {}, [](rondo::Communicator& comm) {
    PacedLearner learner(comm.rank(), 0.001);
    learner.set_shares(std::vector<double>{1, 0, 3});
    const auto mine = static_cast<float>(comm.rank() + 1);
    learner.set_statistics(std::vector<float>{mine, 100 * mine});
    const TrainingOptions options{.learner = {.batch_size = 64}};
    Updates updates(comm, learner);
    Trainer trainer(comm, dataset(), options, learner, updates);
    trainer.run_epoch(1, [](std::size_t, std::size_t) {});
    std::vector<std::uint64_t> samples(3);
    const std::vector<std::uint64_t> own{learner.samples()};
    comm.all_gather(own, samples);
    EXPECT_EQ(samples[1], 0U);
    const auto weight = [&](int rank) {
      return static_cast<double>(samples[static_cast<std::size_t>(rank)]);
    };
    const double mean = (weight(0) * 1 + weight(2) * 3) / (weight(0) + weight(2));
    EXPECT_NEAR(static_cast<double>(learner.statistics()[0]), mean, 1e-6);
    EXPECT_NEAR(static_cast<double>(learner.statistics()[1]), 100 * mean, 1e-4);
  });
}

// What a rank tells of itself: all samples are somebody's, and waiting for others is nobody's time.
TEST(Trainer, ALearnerCountsItsSamplesAndItsOwnTime) {
  rondo::test::run_ranks(2, {}, [](rondo::Communicator& comm) {
    const TrainingOptions options{.learner = {.batch_size = 64, .passes = 2, .shares = {3, 1}}};
    const auto waits = std::chrono::milliseconds(300);
    const auto learner =
        make_cpu_learner(lenet_task(), dataset(), options.learner, {comm.rank(), comm.size()},
                         [&](ParameterBlock& gradients) {
                           return exchange_by(
                               [&](std::span<float> all) {
                                 std::this_thread::sleep_for(waits);
                                 comm.all_reduce(all);
                               },
                               gradients);
                         });
    learner->begin_epoch(shuffled(230, 1, 1));
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t step = 0; step < 4; ++step) learner->step(step);
    const std::chrono::duration<double> all = std::chrono::steady_clock::now() - start;
    const Computed computed = learner->computed();
    EXPECT_EQ(computed.samples, comm.rank() == 0 ? 48U * 3 + 29 : 16U * 3 + 9);
    EXPECT_EQ(computed.timed_samples, computed.samples - (comm.rank() == 0 ? 48 : 16));
    EXPECT_GT(computed.seconds, 0);
    EXPECT_LE(computed.seconds + 4 * 0.3, all.count());
  });
}

TEST(Trainer, TheSameRunGivesTheSameBits) {
  EXPECT_EQ(train(2, {.learner = {.batch_size = 50, .rate = 0.05F}}).hash,
            train(2, {.learner = {.batch_size = 50, .rate = 0.05F}}).hash);
}

// With overlap or without, in one call or in buckets of any size, the bits are equal: the sum of
// two gradients has only one order.
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
    const Outcome many = train(2, {.learner = {.batch_size = 64, .rate = 0.05F, .passes = passes}});
    expect_same(many, one, std::to_string(passes) + " passes");
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
  const Outcome one = train(1, {.learner = {.batch_size = 2, .rate = 0.05F}, .epochs = 1});
  const Outcome three = train(3, {.learner = {.batch_size = 2, .rate = 0.05F}, .epochs = 1});
  EXPECT_NEAR(three.loss, one.loss, 1e-4);
}

TEST(Trainer, ParametersThatDivergeAreNoticed) {
  rondo::test::run_ranks(2, {}, [](rondo::Communicator& comm) {
    const auto learner = make_cpu_learner(lenet_task(), dataset(), {}, {comm.rank(), comm.size()},
                                          [](ParameterBlock&) { return Exchange(); });
    Updates updates(comm, *learner);
    Trainer trainer(comm, dataset(), {}, *learner, updates);
    ParameterBlock parameters = learner->parameters();
    EXPECT_EQ(trainer.agreed_hash(), hash_of(parameters));
    if (comm.rank() == 1) parameters.all()[70000] += 1.0F;
    learner->set_parameters(parameters);
    EXPECT_THROW(trainer.agreed_hash(), std::runtime_error);
  });
}

}  // namespace
}  // namespace lenet
