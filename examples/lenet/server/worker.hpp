// How a worker trains with parameter servers.
#pragma once

#include <cstdint>
#include <functional>
#include <rondo/communicator.hpp>
#include <span>

#include "client.hpp"
#include "examples/layers/learner.hpp"

namespace lenet {

// Borrows all that it is given.
class ServedWorker {
 public:
  // `workers`: the communicator of all workers.
  ServedWorker(ServerClient& servers, rondo::Communicator& workers, Learner& learner,
               const TrainingOptions& options);

  // Collective. The servers take worker 0's parameters, and all workers take them from there.
  // `epochs_before`: those that an earlier training did, from which this one goes on; the learning
  // rate depends on them.
  void begin(const ParameterBlock& parameters, std::size_t epochs_before = 0);
  // Collective. Trains on the samples in this order, and takes the servers' parameters. Synchronous
  // servers: each worker takes its share of each minibatch. Else a minibatch has a part for each
  // worker, of equal size, and whoever is free takes the next part. Calls `on_step(done, all)`
  // after each of its own minibatches.
  void run_epoch(std::span<const std::uint32_t> order,
                 const std::function<void(std::size_t, std::size_t)>& on_step);
  // How often this worker has pushed.
  [[nodiscard]] std::size_t pushes() const { return pushes_; }

 private:
  void train(std::span<const std::uint32_t> samples, std::size_t whole, std::size_t step);
  // The number of the epoch's first step, from the beginning of all training.
  [[nodiscard]] std::size_t first_step() const {
    return (epochs_before_ + epochs_) * steps_of_an_epoch_;
  }
  void read_what_all_have_sent();
  void take_parts(std::span<const std::uint32_t> order,
                  const std::function<void(std::size_t, std::size_t)>& on_step);

  ServerClient& servers_;
  rondo::Communicator& workers_;
  Learner& learner_;
  TrainingOptions options_;
  ParameterBlock parameters_;
  std::size_t epochs_before_ = 0;
  std::size_t epochs_ = 0;  // since begin(): the servers' counters begin there, too
  std::size_t pushes_ = 0;
  std::size_t steps_of_an_epoch_ = 1;
};

}  // namespace lenet
