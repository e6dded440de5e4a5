#include <stdexcept>

#include "cuda/models.hpp"
#include "learner.hpp"

namespace lenet {

std::unique_ptr<Learner> make_cuda_learner(
    const Task& /*task*/, const Dataset& /*data*/, const TrainingOptions& /*options*/,
    rondo::cuda::Communicator& /*devices*/,
    const std::optional<rondo::GradientOptions>& /*gradients*/) {
  throw std::runtime_error(
      "this rondo-lenet was built without cuDNN and cuBLAS: only --device cpu is there");
}

BuildOnGpu lenet_on_gpu() { return {}; }
BuildOnGpu resnet18_on_gpu() { return {}; }
BuildOnGpu spirals_on_gpu() { return {}; }

}  // namespace lenet
