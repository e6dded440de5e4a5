#include "tasks.hpp"

#include <array>
#include <stdexcept>

#include "examples/layers/idx.hpp"
#include "examples/lenet/task.hpp"
#include "models.hpp"
#include "models/resnet18.hpp"
#include "models/spirals.hpp"

namespace lenet::systems {
namespace {

const std::array<const Task*, 3>& tasks() {
  static const std::array<const Task*, 3> kTasks{&lenet_task(), &resnet18_task(), &spirals_task()};
  return kTasks;
}

}  // namespace

const Task& resnet18_task() {
  static const Task kTask{.name = "resnet18",
                          .input_elems = kImagePixels,
                          .classes = kClasses,
                          .shapes = resnet18::shapes(),
                          .read = read_images,
                          .folder = kFashionMnist,
                          .normalises = true,
                          .make_model = resnet18_on_cpu(),
                          .build_on_gpu = resnet18_on_gpu()};
  return kTask;
}

const Task& spirals_task() {
  static const Task kTask{.name = "spirals",
                          .input_elems = spirals::kInputs,
                          .classes = spirals::kOutputs,
                          .shapes = spirals::shapes(),
                          .read = [](const auto& /*folder*/) { return spirals::samples(); },
                          .bucket_kib = 16,
                          .make_model = spirals_on_cpu(),
                          .build_on_gpu = spirals_on_gpu()};
  return kTask;
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const Task* task : tasks()) names.push_back(task->name);
  return names;
}

const Task& task_named(std::string_view name) {
  for (const Task* task : tasks()) {
    if (task->name == name) return *task;
  }
  throw std::runtime_error("there is no model '" + std::string(name) + "'");
}

}  // namespace lenet::systems
