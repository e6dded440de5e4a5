// The models by oneDNN.
#pragma once

#include <string>

#include "examples/layers/task.hpp"

namespace lenet {

// By the task's name; empty where there is none, and in a build without oneDNN.
MakeModel model_on_cpu(const std::string& name);

}  // namespace lenet
