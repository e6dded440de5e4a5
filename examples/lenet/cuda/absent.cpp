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

BuildOnGpu model_on_gpu(const std::string& /*name*/) { return {}; }

}  // namespace lenet
