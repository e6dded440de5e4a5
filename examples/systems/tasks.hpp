// The tasks of rondo-systems beside LeNet. To train something else, make another Task, as tasks.cpp
// makes spirals_task(): models/spirals.hpp has its samples and layers, and models.hpp names it for
// each device.
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
