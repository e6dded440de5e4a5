// Data-parallel training: every rank takes its share of each minibatch, and gradients are summed.
#pragma once

#include <cstdint>
#include <rondo/communicator.hpp>
#include <vector>

#include "examples/layers/batches.hpp"
#include "examples/layers/learner.hpp"
#include "updates.hpp"

namespace lenet {

struct TrainingOptions {
  LearnerOptions learner;
  std::uint64_t seed = 1;
  // How many ranks, from rank 0 on, evaluate, each on its share of the test set, while the others
  // wait; 0: all.
  int evaluators = 0;
};

struct EpochResult {
  double seconds = 0;  // of training, on the slowest rank
  // Where ranks train alone, of their separate parameters.
  double train_loss = 0;
  double train_accuracy = 0;
  double test_accuracy = 0;
  double evaluation_seconds = 0;
  double sent_bytes = 0;  // Updates::run_epoch, of this rank
};

// After an epoch: all that training goes on from.
struct TrainingState {
  int epochs = 0;  // done
  std::size_t steps = 0;
  std::size_t samples = 0;  // of the training set
  std::vector<float> parameters;
  std::vector<float>
      statistics;  // Learner::statistics(), of which all ranks have the same after an epoch
};

// One rank of a training run. Borrows all that it is given.
class Trainer {
 public:
  // Collective: rank 0 makes the parameters from the seed, and all ranks get them. `comm` is that
  // of the ranks that train.
  // `start`: on rank 0, what training goes on from; null: from the beginning. Throws
  // std::runtime_error if it is of a model with other parameters, or of epochs with another number
  // of steps.
  Trainer(rondo::Communicator& comm, const Dataset& data, const TrainingOptions& options,
          Learner& learner, Updates& updates, const TrainingState* start = nullptr);

  // After the last epoch, or those that `start` had done.
  [[nodiscard]] TrainingState state();
  [[nodiscard]] int epochs_done() const { return epochs_done_; }

  // Collective. Calls `on_step` after each minibatch.
  EpochResult run_epoch(int epoch, const OnStep& on_step);

  // Collective: the hash of the parameters, which must be equal on all ranks. Throws
  // std::runtime_error if they differ.
  std::uint64_t agreed_hash();

 private:
  void begin_from(const TrainingState* start, ParameterBlock& parameters);
  void refuse_what_is_not_finite(int epoch, double loss);
  void average_statistics();
  double evaluate();
  double slowest(double seconds);

  rondo::Communicator& comm_;
  const Dataset& data_;
  TrainingOptions options_;
  Learner& learner_;
  Updates& updates_;
  int epochs_done_ = 0;
  std::size_t steps_done_ = 0;
};

}  // namespace lenet
