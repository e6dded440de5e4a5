#include "updates.hpp"

namespace lenet {

double ring_bytes(int ranks, std::size_t bytes) {
  return 2.0 * (ranks - 1) / ranks * static_cast<double>(bytes);
}

Updates::Updates(rondo::Communicator& comm, Learner& learner, std::size_t element_bytes)
    : comm_(comm),
      learner_(learner),
      gradient_bytes_(ring_bytes(comm.size(), learner.parameters().all().size() * element_bytes)) {}

void Updates::begin(ParameterBlock& parameters) {
  comm_.broadcast(parameters.all(), 0);
  learner_.set_parameters(parameters);
}

double Updates::run_epoch(const Epoch& epoch, const OnStep& on_step) {
  for (std::size_t index = 0; index < epoch.steps; ++index) {
    learner_.step(index);
    on_step(index + 1, epoch.steps);
  }
  return static_cast<double>(epoch.steps) * gradient_bytes_;
}

}  // namespace lenet
