#include <stdexcept>

#include "learner.hpp"

namespace lenet {

std::unique_ptr<Learner> make_cpu_learner(const Dataset& /*data*/,
                                          const TrainingOptions& /*options*/, RankOf /*place*/,
                                          SumGradients /*sum_gradients*/) {
  throw std::runtime_error(
      "this rondo-lenet was built without oneDNN: only --device cuda is there");
}

}  // namespace lenet
