// Trains LeNet on a few images, with ranks that are threads.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "examples/lenet/lenet_shapes.hpp"
#include "examples/lenet/summing.hpp"
#include "examples/lenet/task.hpp"
#include "examples/lenet/trainer.hpp"
#include "tests/layers/bright_bars.hpp"
#include "tests/layers/same_moves.hpp"
#include "tests/support/ranks.hpp"

namespace lenet {

inline const Dataset& dataset() {
  static const Dataset kData{bright_bars(230, 1), bright_bars(101, 2)};
  return kData;
}

inline constexpr std::uint64_t kSeed = 3;

struct Outcome {
  std::vector<float> parameters;
  double loss = 0;
  double test_accuracy = 0;
  std::uint64_t hash = 0;
  double sent_bytes = 0;
};

struct How {
  LearnerOptions learner = {.batch_size = 64, .rate = 0.05F};
  rondo::Algorithm algorithm = rondo::Algorithm::ring;
  int epochs = 2;
  bool reducer = true;  // else one all_reduce after backprop
  rondo::GradientOptions gradients = {};
  // Empty: learners sum their gradients.
  std::function<std::unique_ptr<Updates>(rondo::Communicator&, HostLearner&)> updates = {};
};

inline Exchange make_exchange(rondo::Communicator& comm, ParameterBlock& gradients,
                              const How& how) {
  if (!how.reducer) {
    return exchange_by([&comm](std::span<float> all) { comm.all_reduce(all); }, gradients);
  }
  rondo::GradientOptions options = how.gradients;
  options.average = rondo::Average::sum;
  if (options.bucket_bytes == 0) options.bucket_bytes = std::size_t{32} << 10U;
  return exchange_by(std::make_shared<rondo::GradientReducer>(comm, reducible(gradients), options));
}

inline Outcome train_rank(rondo::Communicator& comm, const How& how) {
  const TrainingOptions options{.learner = how.learner, .seed = kSeed};
  const auto learner = make_cpu_learner(
      lenet_task(), dataset(), options.learner, {comm.rank(), comm.size()},
      [&](ParameterBlock& gradients) { return make_exchange(comm, gradients, how); });
  const auto updates =
      how.updates ? how.updates(comm, *learner) : std::make_unique<Updates>(comm, *learner);
  Trainer trainer(comm, dataset(), options, *learner, *updates);
  EpochResult result;
  for (int epoch = 1; epoch <= how.epochs; ++epoch) {
    result = trainer.run_epoch(epoch, [](std::size_t, std::size_t) {});
  }
  const std::uint64_t hash = trainer.agreed_hash();
  const ParameterBlock parameters = learner->parameters();
  return {{parameters.all().begin(), parameters.all().end()},
          result.train_loss,
          result.test_accuracy,
          hash,
          result.sent_bytes};
}

inline Outcome train(int ranks, const How& how) {
  std::mutex mutex;
  std::set<std::uint64_t> hashes;
  Outcome outcome;
  rondo::test::run_ranks(ranks, {.algorithm = how.algorithm}, [&](rondo::Communicator& comm) {
    Outcome mine = train_rank(comm, how);
    const std::lock_guard lock(mutex);
    hashes.insert(mine.hash);
    outcome = std::move(mine);
  });
  EXPECT_EQ(hashes.size(), 1U);
  return outcome;
}

inline void expect_same(const Outcome& actual, const Outcome& expected, const std::string& what) {
  EXPECT_NEAR(actual.loss, expected.loss, 1e-5) << what;
  expect_same_moves(actual.parameters, expected.parameters, lenet_shapes(), kSeed, what);
}

}  // namespace lenet
