// Data-parallel training: every rank takes its share of each minibatch, and gradients are summed.
#pragma once

#include <cstdint>
#include <functional>
#include <rondo/communicator.hpp>

#include "batches.hpp"
#include "learner.hpp"

namespace lenet {

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
  // Collective: rank 0 makes the parameters from the seed, and all ranks get them.
  Trainer(rondo::Communicator& comm, const Dataset& data, const TrainingOptions& options,
          Learner& learner);

  // Collective. Calls `on_step(done, all)` after each minibatch.
  EpochResult run_epoch(int epoch, const std::function<void(std::size_t, std::size_t)>& on_step);

  // Collective: the hash of the parameters, which must be equal on all ranks. Throws
  // std::runtime_error if they differ.
  std::uint64_t agreed_hash();

 private:
  double evaluate();
  double slowest(double seconds);

  rondo::Communicator& comm_;
  const Dataset& data_;
  TrainingOptions options_;
  Learner& learner_;
};

}  // namespace lenet
