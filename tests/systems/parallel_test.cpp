// A model whose parts several ranks compute does the arithmetic of one rank.

#include "examples/systems/parallel/lenet_parts.hpp"

#include "examples/lenet/summing.hpp"
#include "examples/lenet/task.hpp"
#include "examples/lenet/trainer.hpp"

#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/layers/bright_bars.hpp"
#include "tests/layers/same_moves.hpp"
#include "tests/support/ranks.hpp"

namespace lenet::systems {
namespace {

const Dataset& dataset() {
  static const Dataset kData{bright_bars(230, 1), bright_bars(101, 2)};
  return kData;
}

struct Outcome {
  std::vector<float> parameters;
  std::vector<double> losses;  // of each epoch
  double test_accuracy = 0;
  std::size_t part_bytes = 0;
};

constexpr std::uint64_t kSeed = 3;
constexpr int kEpochs = 2;
constexpr std::size_t kBatch = 64;  // and one of 38

Exchange summing(rondo::Communicator& comm, ParameterBlock& gradients) {
  rondo::GradientOptions options;
  options.average = rondo::Average::sum;
  options.bucket_bytes = std::size_t{32} << 10U;
  return exchange_by(std::make_shared<rondo::GradientReducer>(comm, reducible(gradients), options));
}

Outcome train_rank(rondo::Communicator& comm, const Task& task) {
  const TrainingOptions options{.learner = {.batch_size = kBatch, .rate = 0.05F}, .seed = kSeed};
  const auto learner =
      make_cpu_learner(task, dataset(), options.learner, {comm.rank(), comm.size()},
                       [&](ParameterBlock& gradients) { return summing(comm, gradients); });
  Updates updates(comm, *learner);
  Trainer trainer(comm, dataset(), options, *learner, updates);
  Outcome outcome;
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    const EpochResult result = trainer.run_epoch(epoch, [](std::size_t, std::size_t) {});
    outcome.losses.push_back(result.train_loss);
    outcome.test_accuracy = result.test_accuracy;
  }
  trainer.agreed_hash();
  const ParameterBlock parameters = learner->parameters();
  outcome.parameters.assign(parameters.all().begin(), parameters.all().end());
  return outcome;
}

const Outcome& one_rank() {
  static const Outcome kOne = [] {
    Outcome outcome;
    rondo::test::run_ranks(
        1, {}, [&](rondo::Communicator& comm) { outcome = train_rank(comm, lenet_task()); });
    return outcome;
  }();
  return kOne;
}

// Ranks of the same model are neighbours. All must see the same losses; returns what rank 0 saw.
Outcome train_split(Split split, int parts, int ranks, std::size_t micro_batches = 3) {
  std::mutex mutex;
  Outcome outcome;
  rondo::test::run_ranks(ranks, {}, [&](rondo::Communicator& comm) {
    const auto model = std::make_shared<Parts>(*comm.split(comm.rank() / parts));
    rondo::Communicator data = *comm.split(comm.rank() % parts);
    const Task task = lenet_part(split, model, micro_batches);
    Outcome mine = train_rank(data, task);
    mine.part_bytes = model->sent_bytes();
    ParameterBlock parameters(task.shapes);
    std::copy(mine.parameters.begin(), mine.parameters.end(), parameters.all().begin());
    const ParameterBlock whole = joined(parameters, *model, split);
    const std::lock_guard lock(mutex);
    for (std::size_t epoch = 0; epoch < mine.losses.size(); ++epoch) {
      EXPECT_NEAR(mine.losses.at(epoch), one_rank().losses.at(epoch), 1e-5)
          << "rank " << comm.rank() << ", epoch " << epoch;
    }
    EXPECT_NEAR(mine.test_accuracy, one_rank().test_accuracy, 1e-9) << "rank " << comm.rank();
    if (model->part() != 0) return;
    expect_same_moves(whole.all(), one_rank().parameters, whole.shapes(), kSeed,
                      "rank " + std::to_string(comm.rank()));
    if (comm.rank() == 0) outcome = std::move(mine);
  });
  return outcome;
}

TEST(Parallel, ColumnsOfTheDenseLayersDoTheArithmeticOfOneRank) {
  train_split(Split::columns, 2, 2);
  train_split(Split::columns, 3, 3);
}

TEST(Parallel, RowsOfTheDenseLayersDoTheArithmeticOfOneRank) {
  train_split(Split::rows, 2, 2);
  train_split(Split::rows, 3, 3);
}

TEST(Parallel, TwoStagesDoTheArithmeticOfOneRank) {
  for (const std::size_t micro_batches : {1U, 2U, 3U, 100U}) {
    SCOPED_TRACE(std::to_string(micro_batches) + " micro-batches");
    train_split(Split::layers, 2, 2, micro_batches);
  }
}

TEST(Parallel, GridsOfDataAndModelDoTheArithmeticOfOneRank) {
  train_split(Split::columns, 2, 4);
  train_split(Split::rows, 2, 4);
  train_split(Split::layers, 2, 4);
}

// 230 samples are trained on and 101 tested, forward; 4 bytes each.
TEST(Parallel, PartsCountWhatTheySend) {
  constexpr std::size_t kTrained = 230 * sizeof(float) * kEpochs;
  constexpr std::size_t kTested = 101 * sizeof(float) * kEpochs;
  // Half of the gathered outputs, and the sums of the slopes: by the ring of two as many as the
  // elements.
  EXPECT_EQ(train_split(Split::columns, 2, 2).part_bytes,
            (kTrained + kTested) * (64 + 5) + kTrained * (128 + 800));
  EXPECT_EQ(train_split(Split::rows, 2, 2).part_bytes,
            (kTrained + kTested) * (128 + 10) + kTrained * (400 + 64));
  EXPECT_EQ(train_split(Split::layers, 2, 2).part_bytes, (kTrained + kTested) * 800);
}

TEST(Parallel, PartsHaveTheInitialValuesOfTheWhole) {
  ParameterBlock whole(lenet_part_shapes(Split::columns, 0, 1));
  initialise(whole, 5);
  const auto shapes = lenet_part_shapes(Split::columns, 2, 3);
  ParameterBlock part(shapes);
  initialise(part, 5);
  // W3 is 800×128, of which the last of three parts has columns 85 to 127.
  constexpr std::size_t kW3 = 4;
  ASSERT_EQ(part[kW3].size(), 800U * 43);
  for (std::size_t row = 0; row < 800; ++row) {
    for (std::size_t column = 0; column < 43; ++column) {
      ASSERT_EQ(part[kW3][row * 43 + column], whole[kW3][row * 128 + 85 + column]);
    }
  }
}

TEST(Parallel, ImpossibleSplitsAreRefused) {
  EXPECT_THROW(lenet_part_shapes(Split::layers, 0, 3), std::runtime_error);
  EXPECT_THROW(lenet_part_shapes(Split::columns, 0, 11), std::runtime_error);
  EXPECT_THROW(split_named("diagonals"), std::runtime_error);
}

}  // namespace
}  // namespace lenet::systems
