// Steps of which ranks make some alone, with a learning rate that grows at first.
#pragma once

#include "examples/lenet/updates.hpp"

namespace lenet::systems {

struct SeparateOptions {
  float rate = 0.2F;
  double warmup_epochs = 0;  // during which the learning rate grows to `rate`
  // If not 0, ranks do not sum gradients (LearnerOptions::alone): each trains alone for so many
  // steps, then all take the average of their parameters. So they do at the end of an epoch.
  std::size_t local_steps = 0;
  std::size_t resync_steps = 0;  // if not 0, after so many steps all take rank 0's parameters
};

// The learning rate of step `step` of a training whose epochs have `steps` steps each.
float rate_at(std::size_t step, std::size_t steps, const SeparateOptions& options);

class SeparateUpdates final : public Updates {
 public:
  SeparateUpdates(rondo::Communicator& comm, HostLearner& learner, const SeparateOptions& options,
                  std::size_t element_bytes = sizeof(float));

  double run_epoch(const Epoch& epoch, const OnStep& on_step) override;

 private:
  double average_parameters();
  double take_parameters_of_rank_0();

  HostLearner& learner_;
  SeparateOptions options_;
  std::size_t averaged_samples_ = 0;  // of this epoch, until ranks last averaged their parameters
};

}  // namespace lenet::systems
