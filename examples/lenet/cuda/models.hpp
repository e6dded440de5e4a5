// The models by cuDNN and cuBLAS.
#pragma once

#include <string>

#include "examples/layers/task.hpp"

namespace lenet {

// By the task's name; empty where there is none, and in a build without cuDNN.
BuildOnGpu model_on_gpu(const std::string& name);

}  // namespace lenet
