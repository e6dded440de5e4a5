// Data-parallel training: every rank takes its share of each minibatch, and gradients are summed.
#pragma once

#include <cstdint>
#include <functional>
#include <rondo/communicator.hpp>
#include <span>
#include <vector>

#include "batches.hpp"
#include "model.hpp"

namespace lenet {

// Sums the gradients of all ranks, in place.
using SumGradients = std::function<void(std::span<float>)>;

struct TrainingOptions {
  std::size_t batch_size = 256;
  float rate = 0.2F;
  std::uint64_t seed = 5;
};

struct EpochResult {
  double seconds = 0;  // of training, on the slowest rank
  double train_loss = 0;
  double train_accuracy = 0;
  double test_accuracy = 0;
  double evaluation_seconds = 0;
};

// One rank of a training run. Borrows all that it is given.
class Trainer {
 public:
  // Collective: rank 0's parameters become everyone's.
  Trainer(rondo::Communicator& comm, const Dataset& data, const TrainingOptions& options,
          SumGradients sum_gradients);

  // Collective. `on_step(done, all)` is told of each minibatch.
  EpochResult run_epoch(int epoch, const std::function<void(std::size_t, std::size_t)>& on_step);

  // Collective: the hash of the parameters, which must be equal on all ranks; throws
  // std::runtime_error that says so where they are not.
  std::uint64_t agreed_hash();

  [[nodiscard]] ParameterBlock& parameters() { return parameters_; }

 private:
  double evaluate();
  double slowest(double seconds);

  rondo::Communicator& comm_;
  const Dataset& data_;
  TrainingOptions options_;
  SumGradients sum_gradients_;
  ParameterBlock parameters_;
  ParameterBlock gradients_;
  Model model_;
  Batch batch_;
};

}  // namespace lenet
