// Data-parallel training: k ranks with batch B do the arithmetic of one rank with batch B.

#include "trainer.hpp"

#include "lenet_shapes.hpp"

#include <chrono>
#include <limits>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tasks.hpp"
#include "tests/lenet/bright_bars.hpp"
#include "tests/lenet/same_moves.hpp"
#include "tests/support/ranks.hpp"

namespace lenet {
namespace {

const Dataset& dataset() {
  static const Dataset kData{bright_bars(230, 1), bright_bars(101, 2)};
  return kData;
}

constexpr std::uint64_t kSeed = 3;

struct Outcome {
  std::vector<float> parameters;
  double loss = 0;
  double test_accuracy = 0;
  std::uint64_t hash = 0;
  double sent_bytes = 0;
};

struct How {
  std::size_t batch_size = 64;
  rondo::Algorithm algorithm = rondo::Algorithm::ring;
  int epochs = 2;
  int passes = 1;
  bool reducer = true;  // else one all_reduce after backprop
  rondo::GradientOptions gradients = {};
  std::vector<double> shares = {};
  double warmup_epochs = 0;
  std::size_t local_steps = 0;
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
    const TrainingOptions options{.batch_size = how.batch_size,
                                  .rate = 0.05F,
                                  .seed = kSeed,
                                  .passes = how.passes,
                                  .shares = how.shares,
                                  .warmup_epochs = how.warmup_epochs,
                                  .local_steps = how.local_steps};
    const auto learner = make_cpu_learner(
        lenet_task(), dataset(), options, {comm.rank(), comm.size()},
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
               hash,
               result.sent_bytes};
  });
  EXPECT_EQ(hashes.size(), 1U);
  return outcome;
}

void expect_same(const Outcome& actual, const Outcome& expected, const std::string& what) {
  EXPECT_NEAR(actual.loss, expected.loss, 1e-5) << what;
  expect_same_moves(actual.parameters, expected.parameters, lenet_shapes(), kSeed, what);
}

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
    expect_same(train(static_cast<int>(shares.size()), {.shares = shares}), one,
                std::to_string(shares[0]) + " : " + std::to_string(shares[1]));
  }
}

TEST(Trainer, SharesForAnotherNumberOfRanksAreRefused) {
  rondo::test::run_ranks(2, {}, [](rondo::Communicator& comm) {
    const TrainingOptions options{.shares = {1, 2, 3}};
    const auto learner =
        make_cpu_learner(lenet_task(), dataset(), options, {comm.rank(), comm.size()},
                         [](ParameterBlock&) { return Exchange(); });
    EXPECT_THROW(Trainer(comm, dataset(), options, *learner), std::runtime_error);
  });
}

// Takes as long for a sample as the test says.
class PacedLearner final : public Learner {
 public:
  PacedLearner(int rank, double seconds_of_a_sample)
      : rank_(rank), seconds_of_a_sample_(seconds_of_a_sample) {}

  void set_parameters(const ParameterBlock& parameters) override { parameters_ = parameters; }
  ParameterBlock parameters() override { return parameters_; }
  void begin_epoch(std::span<const std::uint32_t> order) override {
    order_.assign(order.begin(), order.end());
    samples_ = 0;
  }
  void step(std::size_t index) override {
    const auto whole = minibatch(order_, index, 64);
    samples_ += (shares_.empty() ? share(whole, rank_, 3) : share(whole, shares_, rank_)).size();
  }
  BatchResult totals() override { return {.loss = loss_}; }
  void set_loss(double loss) { loss_ = loss; }
  std::int64_t correct(std::span<const std::uint32_t> /*samples*/) override { return 0; }
  void set_shares(std::span<const double> shares) override {
    shares_.assign(shares.begin(), shares.end());
  }
  [[nodiscard]] Computed computed() const override {
    return {samples_, samples_, static_cast<double>(samples_) * seconds_of_a_sample_};
  }
  [[nodiscard]] std::size_t samples() const { return samples_; }
  void set_statistics(std::span<const float> values) override {
    statistics_.assign(values.begin(), values.end());
  }
  std::vector<float> statistics() override { return statistics_; }

 private:
  std::vector<float> statistics_;
  int rank_;
  double seconds_of_a_sample_;
  ParameterBlock parameters_{lenet_shapes()};
  std::vector<std::uint32_t> order_;
  std::vector<double> shares_;
  std::size_t samples_ = 0;
  double loss_ = 0;
};

// Rank 1 is four times as slow as the others: it gets a ninth of the samples, and all are ready at
// the same time.
TEST(Trainer, MeasuredSharesFollowTheSpeedOfTheRanks) {
  rondo::test::run_ranks(3, {}, [](rondo::Communicator& comm) {
    PacedLearner learner(comm.rank(), comm.rank() == 1 ? 0.004 : 0.001);
    const TrainingOptions options{.batch_size = 64, .measure_shares = true};
    Trainer trainer(comm, dataset(), options, learner);
    EXPECT_TRUE(trainer.run_epoch(1, [](std::size_t, std::size_t) {}).shares.empty());
    const EpochResult second = trainer.run_epoch(2, [](std::size_t, std::size_t) {});
    EXPECT_NEAR(second.shares[0] + second.shares[1] + second.shares[2], 1, 1e-9);
    ASSERT_EQ(second.shares.size(), 3U);
    EXPECT_NEAR(second.shares[0] / second.shares[1], 4, 1e-9);
    EXPECT_NEAR(static_cast<double>(learner.samples()),
                comm.rank() == 1 ? 230 / 9.0 : 230 * 4 / 9.0, 3);
  });
}

// The first step of an epoch also makes buffers, so its time counts only where there is no other.
TEST(Trainer, SharesAreMeasuredInEpochsOfOneStep) {
  rondo::test::run_ranks(2, {}, [](rondo::Communicator& comm) {
    const TrainingOptions options{.batch_size = 230, .measure_shares = true};
    const auto learner = make_cpu_learner(
        lenet_task(), dataset(), options, {comm.rank(), comm.size()},
        [&](ParameterBlock& gradients) {
          return exchange_by([&](std::span<float> all) { comm.all_reduce(all); }, gradients);
        });
    Trainer trainer(comm, dataset(), options, *learner);
    trainer.run_epoch(1, [](std::size_t, std::size_t) {});
    const Computed computed = learner->computed();
    EXPECT_EQ(computed.timed_samples, 115U);
    ASSERT_GT(computed.seconds, 0);
    const std::vector<double> speed{115 / computed.seconds};
    std::vector<double> speeds(2);
    comm.all_gather(speed, speeds);
    const EpochResult second = trainer.run_epoch(2, [](std::size_t, std::size_t) {});
    ASSERT_EQ(second.shares.size(), 2U);
    EXPECT_NEAR(second.shares[0], speeds[0] / (speeds[0] + speeds[1]), 1e-9);
    EXPECT_NEAR(second.shares[1], speeds[1] / (speeds[0] + speeds[1]), 1e-9);
  });
}

// Rank 1 alone notices, and all ranks are told: by its loss, or by its parameters where its loss
// was still a number.
TEST(Trainer, ParametersThatAFloatDoesNotHoldEndTheTrainingOfAllRanks) {
  for (const bool loss : {true, false}) {
    rondo::test::run_ranks(3, {}, [&](rondo::Communicator& comm) {
      PacedLearner learner(comm.rank(), 0.001);
      if (comm.rank() == 1 && loss) learner.set_loss(std::numeric_limits<double>::quiet_NaN());
      const TrainingOptions options{.batch_size = 64};
      Trainer trainer(comm, dataset(), options, learner);
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
    const TrainingOptions options{.batch_size = 64};
    Trainer trainer(comm, dataset(), options, learner);
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

// Whatever the ranks' shares are: an average is weighted by samples.
TEST(Trainer, SeparateStepsThatAreAveragedAtOnceAddUpToOne) {
  const Outcome one = train(1, {});
  expect_same(train(3, {.local_steps = 1}), one, "equal shares");
  expect_same(train(3, {.shares = {1, 2.5, 0.5}, .local_steps = 1}), one, "1 : 2.5 : 0.5");
  expect_same(train(2, {.shares = {0, 1}, .local_steps = 1}), one, "0 : 1");
}

// What a rank tells of itself: all samples are somebody's, and waiting for others is nobody's time.
TEST(Trainer, ALearnerCountsItsSamplesAndItsOwnTime) {
  rondo::test::run_ranks(2, {}, [](rondo::Communicator& comm) {
    const TrainingOptions options{.batch_size = 64, .passes = 2, .shares = {3, 1}};
    const auto waits = std::chrono::milliseconds(300);
    const auto learner =
        make_cpu_learner(lenet_task(), dataset(), options, {comm.rank(), comm.size()},
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

TEST(Trainer, SeparateStepsLearnWithFewerBytes) {
  const Outcome every = train(2, {});
  const Outcome third = train(2, {.local_steps = 3});
  EXPECT_NE(third.hash, every.hash);
  EXPECT_NEAR(third.loss, every.loss, 0.05);
  // Four steps an epoch: a sum in each; or the second epoch's averages after steps 3 and 4.
  const double vector_bytes = static_cast<double>(lenet_shapes()->count()) * 4;
  EXPECT_EQ(every.sent_bytes, 4 * vector_bytes);
  EXPECT_EQ(third.sent_bytes, 2 * vector_bytes);
  EXPECT_EQ(train(1, {}).sent_bytes, 0);
}

TEST(Trainer, ResyncingUndoesADrift) {
  rondo::test::run_ranks(2, {}, [](rondo::Communicator& comm) {
    const TrainingOptions options{.resync_steps = 2};
    const auto learner =
        make_cpu_learner(lenet_task(), dataset(), options, {comm.rank(), comm.size()},
                         [](ParameterBlock&) { return Exchange(); });
    Trainer trainer(comm, dataset(), options, *learner);
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

TEST(Trainer, TheRateGrowsInTheWarmup) {
  const TrainingOptions options{.rate = 0.4F, .warmup_epochs = 1.5};
  EXPECT_FLOAT_EQ(rate_at(0, 4, options), 0.4F / 6);
  EXPECT_FLOAT_EQ(rate_at(2, 4, options), 0.2F);
  EXPECT_FLOAT_EQ(rate_at(5, 4, options), 0.4F);
  EXPECT_FLOAT_EQ(rate_at(1000, 4, options), 0.4F);
  EXPECT_FLOAT_EQ(rate_at(0, 4, {.rate = 0.4F}), 0.4F);
  EXPECT_NE(train(1, {.warmup_epochs = 1}).hash, train(1, {}).hash);
  expect_same(train(2, {.warmup_epochs = 1}), train(1, {.warmup_epochs = 1}), "warm-up");
}

TEST(Trainer, TheSameRunGivesTheSameBits) {
  EXPECT_EQ(train(2, {.batch_size = 50}).hash, train(2, {.batch_size = 50}).hash);
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
    const Outcome many = train(2, {.passes = passes});
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
  const Outcome one = train(1, {.batch_size = 2, .epochs = 1});
  const Outcome three = train(3, {.batch_size = 2, .epochs = 1});
  EXPECT_NEAR(three.loss, one.loss, 1e-4);
}

TEST(Trainer, ParametersThatDivergeAreNoticed) {
  rondo::test::run_ranks(2, {}, [](rondo::Communicator& comm) {
    const auto learner = make_cpu_learner(lenet_task(), dataset(), {}, {comm.rank(), comm.size()},
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
