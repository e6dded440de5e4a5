#include "trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
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

float rate_at(std::size_t step, std::size_t steps, const TrainingOptions& options) {
  const double warmup = options.warmup_epochs * static_cast<double>(steps);
  const double done = static_cast<double>(step + 1);
  return done >= warmup ? options.rate : static_cast<float>(options.rate * done / warmup);
}

Trainer::Trainer(rondo::Communicator& comm, const Dataset& data, const TrainingOptions& options,
                 Learner& learner)
    : comm_(comm), data_(data), options_(options), learner_(learner) {
  const std::size_t named = options_.shares.size();
  if (named != 0 && named != static_cast<std::size_t>(comm_.size())) {
    throw std::runtime_error(
        fmt::format("--shares has {} numbers, but there are {} ranks", named, comm_.size()));
  }
  ParameterBlock parameters;
  if (comm_.rank() == 0) initialise(parameters, options_.seed);
  comm_.broadcast(parameters.all(), 0);
  learner_.set_parameters(parameters);
}

EpochResult Trainer::run_epoch(int epoch,
                               const std::function<void(std::size_t, std::size_t)>& on_step) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::uint32_t> order = shuffled(data_.train.count(), options_.seed, epoch);
  const std::size_t steps = (order.size() + options_.batch_size - 1) / options_.batch_size;
  learner_.begin_epoch(order);
  sent_bytes_ = 0;
  for (std::size_t index = 0; index < steps; ++index) {
    step(index, steps);
    on_step(index + 1, steps);
  }
  if (separate_steps_ > 0) average_parameters();
  const BatchResult sum = learner_.totals();
  EpochResult result;
  std::array<double, 2> totals = {sum.loss, static_cast<double>(sum.correct)};
  comm_.all_reduce(totals);
  result.train_loss = totals[0] / static_cast<double>(order.size());
  result.train_accuracy = totals[1] / static_cast<double>(order.size());
  result.seconds = slowest(seconds_since(start));
  result.sent_bytes = sent_bytes_;
  result.shares = options_.shares;
  if (options_.measure_shares) measure_shares();
  const auto evaluation = std::chrono::steady_clock::now();
  result.test_accuracy = evaluate();
  result.evaluation_seconds = slowest(seconds_since(evaluation));
  return result;
}

void Trainer::step(std::size_t index, std::size_t steps) {
  if (options_.warmup_epochs > 0) learner_.set_rate(rate_at(steps_done_, steps, options_));
  learner_.step(index);
  ++steps_done_;
  if (options_.local_steps == 0) {
    const double ranks = comm_.size();
    sent_bytes_ +=
        2 * (ranks - 1) / ranks * static_cast<double>(ParameterBlock::kCount * options_.wire_bytes);
  } else if (++separate_steps_ == options_.local_steps) {
    average_parameters();
  }
  if (options_.resync_steps > 0 && steps_done_ % options_.resync_steps == 0) {
    take_parameters_of_rank_0();
  }
}

// In the proportion of the samples that each rank has trained on.
void Trainer::average_parameters() {
  ParameterBlock parameters = learner_.parameters();
  const std::vector<double>& shares = options_.shares;
  const auto rank = static_cast<std::size_t>(comm_.rank());
  const double part = shares.empty() ? 1.0 / comm_.size()
                                     : shares[rank] / std::reduce(shares.begin(), shares.end());
  for (float& value : parameters.all()) value *= static_cast<float>(part);
  comm_.all_reduce(parameters.all());
  learner_.set_parameters(parameters);
  const double ranks = comm_.size();
  sent_bytes_ += 2 * (ranks - 1) / ranks * static_cast<double>(parameters.all().size_bytes());
  separate_steps_ = 0;
}

void Trainer::take_parameters_of_rank_0() {
  ParameterBlock parameters = learner_.parameters();
  comm_.broadcast(parameters.all(), 0);
  learner_.set_parameters(parameters);
  if (comm_.size() > 1) sent_bytes_ += static_cast<double>(parameters.all().size_bytes());
}

// A rank that has computed nothing counts as the fastest, so that the next epoch measures it.
void Trainer::measure_shares() {
  const Computed computed = learner_.computed();
  const double speed =
      computed.samples == 0 ? 0 : static_cast<double>(computed.samples) / computed.seconds;
  std::vector<double> speeds(static_cast<std::size_t>(comm_.size()));
  comm_.all_gather(std::span(&speed, 1), speeds);
  const double fastest = *std::max_element(speeds.begin(), speeds.end());
  for (double& one : speeds) {
    if (one == 0) one = fastest;
  }
  options_.shares = speeds;
  learner_.set_shares(speeds);
}

double Trainer::evaluate() {
  std::vector<std::uint32_t> all(data_.test.count());
  std::iota(all.begin(), all.end(), 0U);
  const auto mine = share(all, comm_.rank(), comm_.size());
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
                      "({:016x}); the ranks have not seen the same gradients",
                      rank, all[rank], all[0]));
    }
  }
  return mine;
}

}  // namespace lenet
