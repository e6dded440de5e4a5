// The other models on CPUs, by oneDNN, and on GPUs, by cuDNN and cuBLAS. Each is empty in a build
// without these libraries.
#pragma once

#include "examples/layers/task.hpp"

namespace lenet::systems {

MakeModel resnet18_on_cpu();
BuildOnGpu resnet18_on_gpu();
MakeModel spirals_on_cpu();
BuildOnGpu spirals_on_gpu();

}  // namespace lenet::systems
