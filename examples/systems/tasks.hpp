// The tasks of rondo-systems beside LeNet. To train something else, make another Task, as tasks.cpp
// makes spirals_task(): models/spirals.hpp has its samples and layers; models.hpp names it for each
// device, cpu/models.cpp and cuda/models.cpp make it, and the files absent.cpp beside them stand in
// for a build without that device's libraries.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "examples/layers/task.hpp"

namespace lenet::systems {

// ResNet-18 on the images that LeNet takes, too.
const Task& resnet18_task();
// Points of the plane on three spirals.
const Task& spirals_task();

// The names of these, and of LeNet.
std::vector<std::string> task_names();
// Throws std::runtime_error where there is none of that name.
const Task& task_named(std::string_view name);

}  // namespace lenet::systems
