#include "trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

namespace lenet {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Trainer::Trainer(rondo::Communicator& comm, const Dataset& data, const TrainingOptions& options,
                 Learner& learner, Updates& updates, const TrainingState* start)
    : comm_(comm), data_(data), options_(options), learner_(learner), updates_(updates) {
  ParameterBlock parameters = learner_.parameters();
  begin_from(comm_.rank() == 0 ? start : nullptr, parameters);
  updates_.begin(parameters);
}

// Fills rank 0's parameters; the statistics and what was done, on all ranks.
void Trainer::begin_from(const TrainingState* start, ParameterBlock& parameters) {
  std::array<std::uint64_t, 2> done = {};
  std::vector<float> statistics = learner_.statistics();
  if (start != nullptr) {
    if (start->parameters.size() != parameters.all().size() ||
        start->statistics.size() != statistics.size()) {
      throw std::runtime_error(fmt::format(
          "the training's state has {} parameters and {} statistics, and this model has "
          "{} and {}",
          start->parameters.size(), start->statistics.size(), parameters.all().size(),
          statistics.size()));
    }
    const std::size_t steps = minibatches(data_.train.count(), options_.learner.batch_size);
    const bool same_steps = start->steps == static_cast<std::size_t>(start->epochs) * steps;
    if (!same_steps || start->samples != data_.train.count()) {
      throw std::runtime_error(
          fmt::format("the training's state has {} steps in {} epochs of {} samples, and here an "
                      "epoch has {} steps and {} samples: go on with the samples and the "
                      "--batch-size that it began with",
                      start->steps, start->epochs, start->samples, steps, data_.train.count()));
    }
    std::copy(start->parameters.begin(), start->parameters.end(), parameters.all().begin());
    done = {static_cast<std::uint64_t>(start->epochs), start->steps};
  } else if (comm_.rank() == 0) {
    initialise(parameters, options_.seed);
  }
  comm_.broadcast(done, 0);
  if (done[0] == 0) return;
  epochs_done_ = static_cast<int>(done[0]);
  steps_done_ = done[1];
  if (start != nullptr) statistics = start->statistics;
  comm_.broadcast(statistics, 0);
  learner_.set_statistics(statistics);
}

TrainingState Trainer::state() {
  const ParameterBlock parameters = learner_.parameters();
  return {epochs_done_,
          steps_done_,
          data_.train.count(),
          {parameters.all().begin(), parameters.all().end()},
          learner_.statistics()};
}

EpochResult Trainer::run_epoch(int epoch, const OnStep& on_step) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::uint32_t> order = shuffled(data_.train.count(), options_.seed, epoch);
  const std::size_t steps = minibatches(order.size(), options_.learner.batch_size);
  learner_.begin_epoch(order);
  EpochResult result;
  result.sent_bytes = updates_.run_epoch({order, steps, steps_done_}, on_step);
  steps_done_ += steps;
  const BatchResult sum = learner_.totals();
  std::array<double, 2> totals = {sum.loss, static_cast<double>(sum.correct)};
  comm_.all_reduce(totals);
  result.train_loss = totals[0] / static_cast<double>(order.size());
  result.train_accuracy = totals[1] / static_cast<double>(order.size());
  result.seconds = slowest(seconds_since(start));
  refuse_what_is_not_finite(epoch, result.train_loss);
  average_statistics();
  const auto evaluation = std::chrono::steady_clock::now();
  result.test_accuracy = evaluate();
  result.evaluation_seconds = slowest(seconds_since(evaluation));
  epochs_done_ = epoch;
  return result;
}

// The same on all ranks, whichever of them has the numbers.
void Trainer::refuse_what_is_not_finite(int epoch, double loss) {
  const ParameterBlock parameters = learner_.parameters();
  const bool finite = std::all_of(parameters.all().begin(), parameters.all().end(),
                                  [](float value) { return std::isfinite(value); });
  std::array<int, 1> refused = {finite && std::isfinite(loss) ? 0 : 1};
  comm_.all_reduce(refused, rondo::ReduceOp::max);
  if (refused[0] == 0) return;
  throw std::runtime_error(fmt::format(
      "in epoch {} the parameters have grown beyond what a float holds; take a "
      "smaller learning rate (--lr), or let it grow (rondo-systems --warmup); if training went on "
      "from a checkpoint, go on from an earlier one or begin anew",
      epoch));
}

// Where each rank normalises by its own samples, ranks have different moving averages. All take
// their average, weighted by the samples that each has trained on, so that it does not matter who
// evaluates.
void Trainer::average_statistics() {
  std::vector<float> statistics = learner_.statistics();
  if (statistics.empty()) return;
  const auto mine = static_cast<double>(learner_.computed().samples);
  std::vector<double> sums(statistics.begin(), statistics.end());
  sums.push_back(1);
  for (double& sum : sums) sum *= mine;
  comm_.all_reduce(sums);
  if (sums.back() == 0) return;
  for (std::size_t i = 0; i < statistics.size(); ++i) {
    statistics[i] = static_cast<float>(sums[i] / sums.back());
  }
  learner_.set_statistics(statistics);
}

double Trainer::evaluate() {
  std::vector<std::uint32_t> all(data_.test.count());
  std::iota(all.begin(), all.end(), 0U);
  const int evaluators = options_.evaluators == 0 ? comm_.size() : options_.evaluators;
  const auto mine = comm_.rank() < evaluators ? share(all, comm_.rank(), evaluators)
                                              : std::span<const std::uint32_t>();
  std::array<std::int64_t, 2> counts = {learner_.correct(mine),
                                        static_cast<std::int64_t>(mine.size())};
  comm_.all_reduce(counts);
  return counts[1] == 0 ? 0 : static_cast<double>(counts[0]) / static_cast<double>(counts[1]);
}

double Trainer::slowest(double seconds) {
  std::array<double, 1> value = {seconds};
  comm_.all_reduce(value, rondo::ReduceOp::max);
  return value[0];
}

std::uint64_t Trainer::agreed_hash() {
  const std::uint64_t mine = hash_of(learner_.parameters());
  std::vector<std::uint64_t> all(static_cast<std::size_t>(comm_.size()));
  comm_.all_gather(std::span(&mine, 1), all);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] != all[0]) {
      throw std::runtime_error(
          fmt::format("the parameters of rank {} (hash {:016x}) differ from those of rank 0 "
                      "({:016x})",
                      rank, all[rank], all[0]));
    }
  }
  return mine;
}

}  // namespace lenet
