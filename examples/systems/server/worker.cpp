#include "worker.hpp"

#include <utility>

#include "examples/layers/batches.hpp"

namespace lenet::systems {

ServedWorker::ServedWorker(ServerClient& servers, rondo::Communicator& workers,
                           HostLearner& learner, WorkerOptions options)
    : Updates(workers, learner),
      servers_(servers),
      learner_(learner),
      options_(std::move(options)),
      parameters_(learner.parameters()) {}

void ServedWorker::begin(ParameterBlock& parameters) {
  if (comm().rank() == 0) servers_.set(parameters.all());
  read_what_all_have_sent();
}

// What a worker has sent is with a server, but the server may not have applied it yet. A server
// answers one worker's requests in their order: when the first read has come, it has applied all
// that this worker had sent.
void ServedWorker::read_what_all_have_sent() {
  servers_.read(parameters_.all());
  comm().barrier();
  servers_.read(parameters_.all());
  learner_.set_parameters(parameters_);
}

double ServedWorker::run_epoch(const Epoch& epoch, const OnStep& on_step) {
  const std::size_t before = pushes_;
  if (options_.asynchronous) {
    take_parts(epoch, on_step);
  } else {
    for (std::size_t index = 0; index < epoch.steps; ++index) {
      const auto whole = minibatch(epoch.order, index, options_.batch_size);
      const auto mine = options_.shares.empty() ? share(whole, comm().rank(), comm().size())
                                                : share(whole, options_.shares, comm().rank());
      train(mine, whole.size(), options_.rate(epoch.steps_before + index, epoch.steps));
      on_step(index + 1, epoch.steps);
    }
  }
  read_what_all_have_sent();
  return static_cast<double>((pushes_ - before) * parameters_.all().size_bytes());
}

void ServedWorker::take_parts(const Epoch& epoch, const OnStep& on_step) {
  const auto parts = static_cast<std::size_t>(comm().size());
  const std::size_t first = parts_taken_;
  const std::size_t end = first + epoch.steps * parts;
  while (const auto number = servers_.take(static_cast<std::uint32_t>(end))) {
    const std::size_t index = (*number - first) / parts;
    const auto whole = minibatch(epoch.order, index, options_.batch_size);
    const auto part = static_cast<int>((*number - first) % parts);
    train(share(whole, part, comm().size()), whole.size(),
          options_.rate(epoch.steps_before + index, epoch.steps));
    on_step(index + 1, epoch.steps);
  }
  parts_taken_ = end;
}

// All gradients of a minibatch together move the parameters as far as in one step of all ranks.
void ServedWorker::train(std::span<const std::uint32_t> samples, std::size_t whole, float rate) {
  servers_.pull(parameters_.all());
  learner_.set_parameters(parameters_);
  servers_.push(learner_.gradients(samples), rate / static_cast<float>(whole));
  ++pushes_;
}

}  // namespace lenet::systems
