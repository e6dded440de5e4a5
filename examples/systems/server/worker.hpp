// How a worker trains with parameter servers.
#pragma once

#include <functional>
#include <rondo/communicator.hpp>
#include <span>
#include <vector>

#include "client.hpp"
#include "examples/lenet/updates.hpp"

namespace lenet::systems {

struct WorkerOptions {
  std::size_t batch_size = 256;
  std::vector<double> shares = {};  // of synchronous workers; empty: equal ones
  // Whether each worker's gradients are an update of their own.
  bool asynchronous = false;
  // The learning rate of step `step` of a training whose epochs have `steps` steps each.
  std::function<float(std::size_t step, std::size_t steps)> rate = {};
};

// Borrows all that it is given.
class ServedWorker final : public Updates {
 public:
  // `workers`: the communicator of all workers.
  ServedWorker(ServerClient& servers, rondo::Communicator& workers, HostLearner& learner,
               WorkerOptions options);

  // Collective. The servers take worker 0's parameters, and all workers take them from there.
  void begin(ParameterBlock& parameters) override;
  // Collective. Trains on the samples in this order, and takes the servers' parameters. Synchronous
  // servers: each worker takes its share of each minibatch. Else a minibatch has a part for each
  // worker, of equal size, and whoever is free takes the next part.
  double run_epoch(const Epoch& epoch, const OnStep& on_step) override;
  // How often this worker has pushed.
  [[nodiscard]] std::size_t pushes() const { return pushes_; }

 private:
  void train(std::span<const std::uint32_t> samples, std::size_t whole, float rate);
  void read_what_all_have_sent();
  void take_parts(const Epoch& epoch, const OnStep& on_step);

  ServerClient& servers_;
  HostLearner& learner_;
  WorkerOptions options_;
  ParameterBlock parameters_;
  std::size_t parts_taken_ = 0;  // by all workers, in the epochs before this one
  std::size_t pushes_ = 0;
};

}  // namespace lenet::systems
