// The tasks of rondo-lenet. To train something else, make another Task, as tasks.cpp makes
// spirals_task(): models/spirals.hpp has its samples and layers, and cpu/models.cpp and
// cuda/models.cpp name it for each device.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "examples/layers/task.hpp"

namespace lenet {

// LeNet on images of 28×28 pixels in 10 classes.
const Task& lenet_task();
// ResNet-18 on the same.
const Task& resnet18_task();
// Points of the plane on three spirals.
const Task& spirals_task();

// The names of these.
std::vector<std::string> task_names();
// Throws std::runtime_error where there is none of that name.
const Task& task_named(std::string_view name);

}  // namespace lenet
