#include "task.hpp"

#include <stdexcept>

namespace lenet {

const Task& task_named(const std::string& name) {
  if (name == "lenet") return lenet_task();
  if (name == "resnet18") return resnet18_task();
  throw std::runtime_error("there is no model '" + name + "'");
}

}  // namespace lenet
