#include <stdexcept>

#include "examples/layers/learner.hpp"

namespace lenet {

std::unique_ptr<Learner> make_cuda_learner(
    const Task& /*task*/, const Dataset& /*data*/, const LearnerOptions& /*options*/,
    rondo::cuda::Communicator& /*devices*/,
    const std::optional<rondo::GradientOptions>& /*gradients*/) {
  throw std::runtime_error(
      "this program was built without cuDNN and cuBLAS: only --device cpu is there");
}

}  // namespace lenet
