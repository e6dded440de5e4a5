#include "tasks.hpp"

#include <fmt/format.h>

#include <array>
#include <stdexcept>

#include "cpu/models.hpp"
#include "cuda/models.hpp"
#include "examples/layers/idx.hpp"
#include "lenet_shapes.hpp"
#include "models/resnet18.hpp"
#include "models/spirals.hpp"

namespace lenet {
namespace {

constexpr const char* kFashionMnist = "/usr/share/datasets/fashion-mnist";

const std::array<const Task*, 3>& tasks() {
  static const std::array<const Task*, 3> kTasks{&lenet_task(), &resnet18_task(), &spirals_task()};
  return kTasks;
}

}  // namespace

const Task& lenet_task() {
  static const Task kTask{.name = "lenet",
                          .input_elems = kImagePixels,
                          .classes = kClasses,
                          .shapes = lenet_shapes(),
                          .read = read_images,
                          .folder = kFashionMnist,
                          .bucket_kib = 16,
                          .make_model = model_on_cpu("lenet"),
                          .build_on_gpu = model_on_gpu("lenet")};
  return kTask;
}

const Task& resnet18_task() {
  static const Task kTask{.name = "resnet18",
                          .input_elems = kImagePixels,
                          .classes = kClasses,
                          .shapes = resnet18::shapes(),
                          .read = read_images,
                          .folder = kFashionMnist,
                          .normalises = true,
                          .make_model = model_on_cpu("resnet18"),
                          .build_on_gpu = model_on_gpu("resnet18")};
  return kTask;
}

const Task& spirals_task() {
  static const Task kTask{.name = "spirals",
                          .input_elems = spirals::kInputs,
                          .classes = spirals::kOutputs,
                          .shapes = spirals::shapes(),
                          .read = [](const auto& /*folder*/) { return spirals::samples(); },
                          .bucket_kib = 16,
                          .make_model = model_on_cpu("spirals"),
                          .build_on_gpu = model_on_gpu("spirals")};
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

}  // namespace lenet
