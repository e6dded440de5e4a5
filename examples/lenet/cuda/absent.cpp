#include <stdexcept>

#include "learner.hpp"

namespace lenet {

std::unique_ptr<Learner> make_cuda_learner(
    const Dataset& /*data*/, const TrainingOptions& /*options*/,
    rondo::cuda::Communicator& /*devices*/,
    const std::optional<rondo::GradientOptions>& /*gradients*/) {
  throw std::runtime_error(
      "this rondo-lenet was built without cuDNN and cuBLAS: only --device cpu is there");
}

}  // namespace lenet
