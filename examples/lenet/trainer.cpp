#include "trainer.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace lenet {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Trainer::Trainer(rondo::Communicator& comm, const Dataset& data, const TrainingOptions& options,
                 Learner& learner)
    : comm_(comm), data_(data), options_(options), learner_(learner) {
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
  for (std::size_t step = 0; step < steps; ++step) {
    learner_.step(step);
    on_step(step + 1, steps);
  }
  const BatchResult sum = learner_.totals();
  EpochResult result;
  std::array<double, 2> totals = {sum.loss, static_cast<double>(sum.correct)};
  comm_.all_reduce(totals);
  result.train_loss = totals[0] / static_cast<double>(order.size());
  result.train_accuracy = totals[1] / static_cast<double>(order.size());
  result.seconds = slowest(seconds_since(start));
  const auto evaluation = std::chrono::steady_clock::now();
  result.test_accuracy = evaluate();
  result.evaluation_seconds = slowest(seconds_since(evaluation));
  return result;
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
