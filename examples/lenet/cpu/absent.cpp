#include <stdexcept>

#include "learner.hpp"
#include "lenet_shapes.hpp"
#include "parallel/lenet_parts.hpp"

namespace lenet {

std::unique_ptr<Learner> make_cpu_learner(const Task& /*task*/, const Dataset& /*data*/,
                                          const TrainingOptions& /*options*/, RankOf /*place*/,
                                          const MakeExchange& /*make_exchange*/) {
  throw std::runtime_error(
      "this rondo-lenet was built without oneDNN: only --device cuda is there");
}

const Task& lenet_task() {
  static const Task kTask{"lenet", lenet_shapes(), read_dataset, {}};
  return kTask;
}

Task lenet_part(Split /*split*/, const std::shared_ptr<Parts>& /*parts*/,
                std::size_t /*micro_batches*/) {
  throw std::runtime_error("this rondo-lenet was built without oneDNN: LeNet cannot be split");
}

const Task& resnet18_task() {
  throw std::runtime_error("this rondo-lenet was built without oneDNN: only LeNet is there");
}

}  // namespace lenet
