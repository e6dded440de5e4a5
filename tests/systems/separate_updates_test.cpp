// Shares that follow the ranks' speed, steps that ranks make alone, and rates that grow.

#include "examples/systems/separate_updates.hpp"

#include <memory>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "examples/systems/shares.hpp"
#include "tests/lenet/paced_learner.hpp"
#include "tests/lenet/trained.hpp"

namespace lenet::systems {
namespace {

How separately(const SeparateOptions& options, const std::vector<double>& shares = {}) {
  How how;
  how.learner.shares = shares;
  how.learner.alone = options.local_steps > 0;
  SeparateOptions separate = options;
  separate.rate = how.learner.rate;
  how.updates = [separate](rondo::Communicator& comm, HostLearner& learner) {
    return std::make_unique<SeparateUpdates>(comm, learner, separate);
  };
  return how;
}

TEST(Shares, ForAnotherNumberOfRanksAreRefused) {
  rondo::test::run_ranks(2, {}, [](rondo::Communicator& comm) {
    EXPECT_THROW(
        make_cpu_learner(lenet_task(), dataset(), {.shares = {1, 2, 3}}, {comm.rank(), comm.size()},
                         [](ParameterBlock&) { return Exchange(); }),
        std::runtime_error);
  });
}

// Rank 1 is four times as slow as the others: it gets a ninth of the samples, and all are ready at
// the same time.
TEST(Shares, FollowTheSpeedOfTheRanks) {
  rondo::test::run_ranks(3, {}, [](rondo::Communicator& comm) {
    PacedLearner learner(comm.rank(), comm.rank() == 1 ? 0.004 : 0.001);
    const TrainingOptions options{.learner = {.batch_size = 64}};
    Updates updates(comm, learner);
    Trainer trainer(comm, dataset(), options, learner, updates);
    MeasuredShares measured(comm, learner);
    trainer.run_epoch(1, [](std::size_t, std::size_t) {});
    const std::vector<double> shares = measured.measure();
    ASSERT_EQ(shares.size(), 3U);
    EXPECT_NEAR(shares[0] + shares[1] + shares[2], 1, 1e-9);
    EXPECT_NEAR(shares[0] / shares[1], 4, 1e-9);
    trainer.run_epoch(2, [](std::size_t, std::size_t) {});
    EXPECT_NEAR(static_cast<double>(learner.samples()),
                comm.rank() == 1 ? 230 / 9.0 : 230 * 4 / 9.0, 3);
  });
}

// The first step of an epoch also makes buffers, so its time counts only where there is no other.
TEST(Shares, AreMeasuredInEpochsOfOneStep) {
  rondo::test::run_ranks(2, {}, [](rondo::Communicator& comm) {
    const TrainingOptions options{.learner = {.batch_size = 230}};
    const auto learner = make_cpu_learner(
        lenet_task(), dataset(), options.learner, {comm.rank(), comm.size()},
        [&](ParameterBlock& gradients) {
          return exchange_by([&](std::span<float> all) { comm.all_reduce(all); }, gradients);
        });
    Updates updates(comm, *learner);
    Trainer trainer(comm, dataset(), options, *learner, updates);
    trainer.run_epoch(1, [](std::size_t, std::size_t) {});
    const Computed computed = learner->computed();
    EXPECT_EQ(computed.timed_samples, 115U);
    ASSERT_GT(computed.seconds, 0);
    const std::vector<double> speed{115 / computed.seconds};
    std::vector<double> speeds(2);
    comm.all_gather(speed, speeds);
    const std::vector<double> shares = MeasuredShares(comm, *learner).measure();
    ASSERT_EQ(shares.size(), 2U);
    EXPECT_NEAR(shares[0], speeds[0] / (speeds[0] + speeds[1]), 1e-9);
    EXPECT_NEAR(shares[1], speeds[1] / (speeds[0] + speeds[1]), 1e-9);
  });
}

// Whatever the ranks' shares are: an average is weighted by samples.
TEST(SeparateUpdates, SeparateStepsThatAreAveragedAtOnceAddUpToOne) {
  const Outcome one = train(1, {});
  expect_same(train(3, separately({.local_steps = 1})), one, "equal shares");
  expect_same(train(3, separately({.local_steps = 1}, {1, 2.5, 0.5})), one, "1 : 2.5 : 0.5");
  expect_same(train(2, separately({.local_steps = 1}, {0, 1})), one, "0 : 1");
}

TEST(SeparateUpdates, SeparateStepsLearnWithFewerBytes) {
  const Outcome every = train(2, {});
  const Outcome third = train(2, separately({.local_steps = 3}));
  EXPECT_NE(third.hash, every.hash);
  EXPECT_NEAR(third.loss, every.loss, 0.05);
  // Four steps an epoch: a sum in each; or the second epoch's averages after steps 3 and 4.
  const double vector_bytes = static_cast<double>(lenet_shapes()->count()) * 4;
  EXPECT_EQ(every.sent_bytes, 4 * vector_bytes);
  EXPECT_EQ(third.sent_bytes, 2 * vector_bytes);
  EXPECT_EQ(train(1, {}).sent_bytes, 0);
}

TEST(SeparateUpdates, ResyncingUndoesADrift) {
  rondo::test::run_ranks(2, {}, [](rondo::Communicator& comm) {
    const TrainingOptions options;
    const auto learner =
        make_cpu_learner(lenet_task(), dataset(), options.learner, {comm.rank(), comm.size()},
                         [](ParameterBlock&) { return Exchange(); });
    SeparateUpdates updates(comm, *learner, {.resync_steps = 2});
    Trainer trainer(comm, dataset(), options, *learner, updates);
    for (int epoch = 1; epoch <= 3; ++epoch) {  // of one step each
      trainer.run_epoch(epoch, [](std::size_t, std::size_t) {});
      if (epoch == 2) {
        trainer.agreed_hash();
      } else {
        EXPECT_THROW(trainer.agreed_hash(), std::runtime_error);
      }
    }
  });
}

TEST(SeparateUpdates, TheRateGrowsInTheWarmup) {
  const SeparateOptions options{.rate = 0.4F, .warmup_epochs = 1.5};
  EXPECT_FLOAT_EQ(rate_at(0, 4, options), 0.4F / 6);
  EXPECT_FLOAT_EQ(rate_at(2, 4, options), 0.2F);
  EXPECT_FLOAT_EQ(rate_at(5, 4, options), 0.4F);
  EXPECT_FLOAT_EQ(rate_at(1000, 4, options), 0.4F);
  EXPECT_FLOAT_EQ(rate_at(0, 4, {.rate = 0.4F}), 0.4F);
  EXPECT_NE(train(1, separately({.warmup_epochs = 1})).hash, train(1, {}).hash);
  expect_same(train(2, separately({.warmup_epochs = 1})),
              train(1, separately({.warmup_epochs = 1})), "warm-up");
}

}  // namespace
}  // namespace lenet::systems
