#include "task.hpp"

#include <stdexcept>

#include "cpu/models.hpp"
#include "cuda/models.hpp"
#include "lenet_shapes.hpp"
#include "models/resnet18.hpp"

namespace lenet {

const Task& lenet_task() {
  static const Task kTask{"lenet", lenet_shapes(), read_dataset, lenet_on_cpu(), lenet_on_gpu()};
  return kTask;
}

const Task& resnet18_task() {
  static const Task kTask{"resnet18", resnet18::shapes(), read_dataset, resnet18_on_cpu(),
                          resnet18_on_gpu()};
  return kTask;
}

const Task& task_named(const std::string& name) {
  if (name == "lenet") return lenet_task();
  if (name == "resnet18") return resnet18_task();
  throw std::runtime_error("there is no model '" + name + "'");
}

}  // namespace lenet
