#include "separate_updates.hpp"

#include <vector>

namespace lenet::systems {

float rate_at(std::size_t step, std::size_t steps, const SeparateOptions& options) {
  const double warmup = options.warmup_epochs * static_cast<double>(steps);
  const double done = static_cast<double>(step + 1);
  return done >= warmup ? options.rate : static_cast<float>(options.rate * done / warmup);
}

SeparateUpdates::SeparateUpdates(rondo::Communicator& comm, HostLearner& learner,
                                 const SeparateOptions& options, std::size_t element_bytes)
    : Updates(comm, learner, element_bytes), learner_(learner), options_(options) {}

double SeparateUpdates::run_epoch(const Epoch& epoch, const OnStep& on_step) {
  double sent_bytes = 0;
  averaged_samples_ = 0;
  std::size_t separate_steps = 0;
  for (std::size_t index = 0; index < epoch.steps; ++index) {
    const std::size_t before = epoch.steps_before + index;
    if (options_.warmup_epochs > 0) learner_.set_rate(rate_at(before, epoch.steps, options_));
    learner_.step(index);
    if (options_.local_steps == 0) {
      sent_bytes += gradient_bytes();
    } else if (++separate_steps == options_.local_steps) {
      sent_bytes += average_parameters();
      separate_steps = 0;
    }
    if (options_.resync_steps > 0 && (before + 1) % options_.resync_steps == 0) {
      sent_bytes += take_parameters_of_rank_0();
    }
    on_step(index + 1, epoch.steps);
  }
  if (separate_steps > 0) sent_bytes += average_parameters();
  return sent_bytes;
}

// Weighted by the samples that each rank has trained on since the last average: after one step this
// is what the sum of the gradients would have given.
double SeparateUpdates::average_parameters() {
  const std::size_t trained = learner_.computed().samples;
  std::vector<double> samples = {static_cast<double>(trained - averaged_samples_)};
  const double mine = samples[0];
  comm().all_reduce(samples);
  averaged_samples_ = trained;
  ParameterBlock parameters = learner_.parameters();
  for (float& value : parameters.all()) value *= static_cast<float>(mine / samples[0]);
  comm().all_reduce(parameters.all());
  learner_.set_parameters(parameters);
  return ring_bytes(comm().size(), parameters.all().size_bytes());
}

double SeparateUpdates::take_parameters_of_rank_0() {
  ParameterBlock parameters = learner_.parameters();
  comm().broadcast(parameters.all(), 0);
  learner_.set_parameters(parameters);
  return comm().size() > 1 ? static_cast<double>(parameters.all().size_bytes()) : 0;
}

}  // namespace lenet::systems
