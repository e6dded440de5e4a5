// Data-parallel training: every rank takes its share of each minibatch, and gradients are summed,
// or parameters averaged now and then.
#pragma once

#include <cstdint>
#include <functional>
#include <rondo/communicator.hpp>
#include <vector>

#include "examples/layers/batches.hpp"
#include "examples/layers/learner.hpp"
#include "server/worker.hpp"

namespace lenet {

struct EpochResult {
  double seconds = 0;  // of training, on the slowest rank
  // Where ranks train alone, of their separate parameters.
  double train_loss = 0;
  double train_accuracy = 0;
  double test_accuracy = 0;
  double evaluation_seconds = 0;
  // Bytes of gradients and parameters that rank 0 sends: to parameter servers, else as if they went
  // by the ring.
  double sent_bytes = 0;
  double part_bytes = 0;  // what rank 0 sends to the other parts of its model, without evaluation
  std::vector<double> shares = {};  // of a minibatch, by rank, of 1 in all; empty: equal ones
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
  // Collective: rank 0 makes the parameters from the seed, and all ranks get them. Throws
  // std::runtime_error unless `shares` names as many ranks as there are. `served`: what this rank
  // trains with if there are parameter servers; else null, and the ranks sum gradients. `comm` is
  // that of the ranks that train.
  // `start`: on rank 0, what training goes on from; null: from the beginning. Throws
  // std::runtime_error if it is of a model with other parameters, or of epochs with another number
  // of steps.
  Trainer(rondo::Communicator& comm, const Dataset& data, const TrainingOptions& options,
          Learner& learner, ServedWorker* served = nullptr, const TrainingState* start = nullptr);

  // After the last epoch, or those that `start` had done.
  [[nodiscard]] TrainingState state();
  [[nodiscard]] int epochs_done() const { return epochs_done_; }

  // Collective. Calls `on_step(done, all)` after each minibatch.
  EpochResult run_epoch(int epoch, const std::function<void(std::size_t, std::size_t)>& on_step);

  // Collective: the hash of the parameters, which must be equal on all ranks. Throws
  // std::runtime_error if they differ.
  std::uint64_t agreed_hash();

 private:
  void begin_from(const TrainingState* start, ParameterBlock& parameters);
  void run_steps(std::span<const std::uint32_t> order,
                 const std::function<void(std::size_t, std::size_t)>& on_step);
  void step(std::size_t index, std::size_t steps);
  void average_parameters();
  void take_parameters_of_rank_0();
  void measure_shares();
  void refuse_what_is_not_finite(int epoch, double loss);
  void average_statistics();
  double evaluate();
  double slowest(double seconds);

  rondo::Communicator& comm_;
  const Dataset& data_;
  TrainingOptions options_;
  Learner& learner_;
  ServedWorker* served_;
  std::size_t parameter_count_;
  int epochs_done_ = 0;
  std::size_t steps_done_ = 0;
  // Where ranks train alone, since they last averaged their parameters.
  std::size_t separate_steps_ = 0;
  std::size_t averaged_samples_ = 0;  // of this epoch, until then
  double sent_bytes_ = 0;             // in this epoch
  std::vector<double> speeds_;        // samples a second of each rank; 0: not measured yet
};

}  // namespace lenet
