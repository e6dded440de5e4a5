#include <stdexcept>

#include "cpu/models.hpp"
#include "learner.hpp"
#include "parallel/lenet_parts.hpp"

namespace lenet {

std::unique_ptr<Learner> make_cpu_learner(const Task& /*task*/, const Dataset& /*data*/,
                                          const TrainingOptions& /*options*/, RankOf /*place*/,
                                          const MakeExchange& /*make_exchange*/) {
  throw std::runtime_error(
      "this rondo-lenet was built without oneDNN: only --device cuda is there");
}

Task lenet_part(Split /*split*/, const std::shared_ptr<Parts>& /*parts*/,
                std::size_t /*micro_batches*/) {
  throw std::runtime_error("this rondo-lenet was built without oneDNN: LeNet cannot be split");
}

MakeModel model_on_cpu(const std::string& /*name*/) { return {}; }

}  // namespace lenet
