// What can be trained: the task without files, and one that is made here.

#include "examples/systems/tasks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "examples/lenet/summing.hpp"
#include "examples/lenet/trainer.hpp"
#include "examples/systems/models/spirals.hpp"
#include "tests/layers/same_moves.hpp"
#include "tests/support/ranks.hpp"

namespace lenet::systems {
namespace {

struct Outcome {
  std::vector<float> parameters;
  EpochResult last;
};

Outcome train(const Task& task, const Dataset& data, int ranks, int epochs, float rate) {
  std::mutex mutex;
  Outcome outcome;
  rondo::test::run_ranks(ranks, {}, [&](rondo::Communicator& comm) {
    const TrainingOptions options{.learner = {.batch_size = 64, .rate = rate}};
    const auto make_exchange = [&](ParameterBlock& gradients) {
      return exchange_by([&comm](std::span<float> all) { comm.all_reduce(all); }, gradients);
    };
    const auto learner =
        make_cpu_learner(task, data, options.learner, {comm.rank(), comm.size()}, make_exchange);
    Updates updates(comm, *learner);
    Trainer trainer(comm, data, options, *learner, updates);
    EpochResult result;
    for (int epoch = 1; epoch <= epochs; ++epoch) {
      result = trainer.run_epoch(epoch, [](std::size_t, std::size_t) {});
    }
    trainer.agreed_hash();  // throws where ranks differ
    const ParameterBlock parameters = learner->parameters();
    const std::lock_guard lock(mutex);
    if (comm.rank() == 0) {
      outcome = {{parameters.all().begin(), parameters.all().end()}, result};
    }
  });
  return outcome;
}

TEST(Spirals, AreLearntAndTwoRanksDoTheArithmeticOfOne) {
  const Dataset data = spirals_task().read({});
  const Outcome one = train(spirals_task(), data, 1, 3, 0.2F);
  EXPECT_GT(one.last.test_accuracy, 0.8);
  const Outcome two = train(spirals_task(), data, 2, 3, 0.2F);
  expect_same_moves(two.parameters, one.parameters, spirals_task().shapes, TrainingOptions{}.seed,
                    "two ranks");
}

// Finds the factors of a sum: neither oneDNN nor classes nor softmax.
class LeastSquares final : public Model {
 public:
  LeastSquares(ParameterBlock& parameters, ParameterBlock& gradients)
      : parameters_(parameters), gradients_(gradients) {}

  BatchResult forward_backward(std::span<const float> inputs, std::span<const std::uint8_t> labels,
                               const std::function<void()>& begin,
                               const GradientReady& ready) override {
    begin();
    const std::span<float> slopes = gradients_.all();
    std::fill(slopes.begin(), slopes.end(), 0.0F);
    BatchResult result;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const float off = error(inputs, labels, i);
      result.loss += static_cast<double>(off * off / 2);
      for (std::size_t k = 0; k < slopes.size(); ++k)
        slopes[k] += off * inputs[i * slopes.size() + k];
    }
    ready(0);
    return result;
  }
  BatchResult forward(std::span<const float> inputs,
                      std::span<const std::uint8_t> labels) override {
    BatchResult result;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      result.correct += std::abs(error(inputs, labels, i)) < 0.5F ? 1 : 0;
    }
    return result;
  }

 private:
  float error(std::span<const float> inputs, std::span<const std::uint8_t> labels, std::size_t i) {
    const std::span<const float> factors = parameters_.all();
    const auto input = inputs.subspan(i * factors.size(), factors.size());
    return std::inner_product(factors.begin(), factors.end(), input.begin(),
                              -static_cast<float>(labels[i]));
  }

  ParameterBlock& parameters_;
  ParameterBlock& gradients_;
};

constexpr std::array<int, 3> kFactors{3, 1, 7};

Samples sums(std::size_t count) {
  std::vector<float> inputs;
  std::vector<std::uint8_t> labels;
  for (std::size_t i = 0; i < count; ++i) {
    const std::array<int, 3> terms{static_cast<int>(i % 5), static_cast<int>(i / 5 % 4),
                                   static_cast<int>(i % 3)};
    inputs.insert(inputs.end(), terms.begin(), terms.end());
    labels.push_back(static_cast<std::uint8_t>(
        std::inner_product(terms.begin(), terms.end(), kFactors.begin(), 0)));
  }
  return samples_of_floats(kFactors.size(), std::move(inputs), std::move(labels));
}

TEST(Task, OfOnesOwnTrains) {
  const auto shapes = std::make_shared<const ParameterShapes>(
      std::vector<ParameterShape>{{"factors", {3, 1, 1, 1}, 0.01F}});
  const Task task{.name = "sums",
                  .input_elems = 3,
                  .classes = 256,
                  .shapes = shapes,
                  .read = [](const auto& /*folder*/) { return Dataset{sums(240), sums(60)}; },
                  .make_model =
                      [](ParameterBlock& parameters, ParameterBlock& gradients, const auto&) {
                        return std::make_unique<LeastSquares>(parameters, gradients);
                      }};
  const Outcome three = train(task, task.read({}), 3, 100, 0.05F);
  EXPECT_EQ(three.last.test_accuracy, 1);
  for (std::size_t k = 0; k < kFactors.size(); ++k) {
    EXPECT_NEAR(three.parameters[k], kFactors[k], 1e-3);
  }
}

std::string refusal(const Task& task, const Dataset& data) {
  try {
    require_fit(task, data);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

TEST(Task, SamplesThatDoNotFitAreRefused) {
  const Dataset good{samples_of_floats(2, {1, 2, 3, 4}, {0, 2}), samples_of_floats(2, {5, 6}, {1})};
  EXPECT_EQ(refusal(spirals_task(), good), "none");
  Dataset longer = good;
  longer.train.input_elems = 4;
  EXPECT_EQ(refusal(spirals_task(), longer),
            "the training samples of spirals have 4 numbers each, but the model takes 2");
  Dataset unknown = good;
  unknown.test.labels = {1, 3};
  EXPECT_EQ(refusal(spirals_task(), unknown),
            "test sample 1 of spirals is of class 3, but the model knows 3 classes, from 0 on");
  EXPECT_THROW(make_cpu_learner(spirals_task(), unknown, {}, {}, {}), std::runtime_error);
  Dataset untested = good;
  untested.test.labels.clear();
  EXPECT_EQ(refusal(spirals_task(), untested), "spirals has no test samples");
  Task without_model = spirals_task();
  without_model.make_model = {};
  EXPECT_THROW(make_cpu_learner(without_model, good, {}, {}, {}), std::runtime_error);
}

// A task whose layers take something else than it says.
TEST(Task, WhoseLayersDoNotFitItsParametersOrSamplesIsRefused) {
  ParameterBlock parameters(spirals::shapes());
  ParameterBlock gradients(spirals::shapes());
  const auto model = spirals_task().make_model(parameters, gradients, {});
  EXPECT_THROW(model->forward(std::vector<float>(3), std::vector<std::uint8_t>(1)),
               std::invalid_argument);
  EXPECT_THROW(model->forward(std::vector<float>(2), std::vector<std::uint8_t>(1, 3)),
               std::invalid_argument);
  const auto others = std::make_shared<const ParameterShapes>(
      std::vector<ParameterShape>(6, {"other", {2, 2, 1, 1}}));
  ParameterBlock wrong(others);
  const auto unfit = spirals_task().make_model(wrong, wrong, {});
  EXPECT_THROW(unfit->forward(std::vector<float>(2), std::vector<std::uint8_t>(1)),
               std::invalid_argument);
}

TEST(Task, AreFoundByName) {
  for (const std::string& name : task_names()) EXPECT_EQ(task_named(name).name, name);
  EXPECT_THROW(task_named("bert"), std::runtime_error);
}

}  // namespace
}  // namespace lenet::systems
