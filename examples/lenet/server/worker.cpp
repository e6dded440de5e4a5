#include "worker.hpp"

#include "examples/layers/batches.hpp"

namespace lenet {

ServedWorker::ServedWorker(ServerClient& servers, rondo::Communicator& workers, Learner& learner,
                           const TrainingOptions& options)
    : servers_(servers),
      workers_(workers),
      learner_(learner),
      options_(options),
      parameters_(learner.parameters()) {}

void ServedWorker::begin(const ParameterBlock& parameters, std::size_t epochs_before) {
  epochs_before_ = epochs_before;
  if (workers_.rank() == 0) servers_.set(parameters.all());
  read_what_all_have_sent();
}

// What a worker has sent is with a server, but the server may not have applied it yet. A server
// answers one worker's requests in their order: when the first read has come, it has applied all
// that this worker had sent.
void ServedWorker::read_what_all_have_sent() {
  servers_.read(parameters_.all());
  workers_.barrier();
  servers_.read(parameters_.all());
  learner_.set_parameters(parameters_);
}

void ServedWorker::run_epoch(std::span<const std::uint32_t> order,
                             const std::function<void(std::size_t, std::size_t)>& on_step) {
  steps_of_an_epoch_ = minibatches(order.size(), options_.batch_size);
  if (options_.asynchronous) {
    take_parts(order, on_step);
  } else {
    for (std::size_t index = 0; index < steps_of_an_epoch_; ++index) {
      const auto whole = minibatch(order, index, options_.batch_size);
      const auto mine = options_.shares.empty() ? share(whole, workers_.rank(), workers_.size())
                                                : share(whole, options_.shares, workers_.rank());
      train(mine, whole.size(), first_step() + index);
      on_step(index + 1, steps_of_an_epoch_);
    }
  }
  ++epochs_;
  read_what_all_have_sent();
}

void ServedWorker::take_parts(std::span<const std::uint32_t> order,
                              const std::function<void(std::size_t, std::size_t)>& on_step) {
  const auto parts = static_cast<std::size_t>(workers_.size());
  const std::size_t first = epochs_ * steps_of_an_epoch_ * parts;
  const std::size_t end = first + steps_of_an_epoch_ * parts;
  while (const auto number = servers_.take(static_cast<std::uint32_t>(end))) {
    const std::size_t index = (*number - first) / parts;
    const auto whole = minibatch(order, index, options_.batch_size);
    const auto part = static_cast<int>((*number - first) % parts);
    train(share(whole, part, workers_.size()), whole.size(), first_step() + index);
    on_step(index + 1, steps_of_an_epoch_);
  }
}

// All gradients of a minibatch together move the parameters as far as in one step of all ranks.
void ServedWorker::train(std::span<const std::uint32_t> samples, std::size_t whole,
                         std::size_t step) {
  servers_.pull(parameters_.all());
  learner_.set_parameters(parameters_);
  servers_.push(learner_.gradients(samples),
                rate_at(step, steps_of_an_epoch_, options_) / static_cast<float>(whole));
  ++pushes_;
}

}  // namespace lenet
