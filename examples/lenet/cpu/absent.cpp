#include <stdexcept>

#include "learner.hpp"

namespace lenet {

std::unique_ptr<Learner> make_cpu_learner(const Dataset& /*data*/,
                                          const TrainingOptions& /*options*/, RankOf /*place*/,
                                          const MakeExchange& /*make_exchange*/) {
  throw std::runtime_error(
      "this rondo-lenet was built without oneDNN: only --device cuda is there");
}

}  // namespace lenet
