// LeNet on CPUs, by oneDNN, and on GPUs, by cuDNN and cuBLAS. Each is empty in a build without
// these libraries.
#pragma once

#include "examples/layers/task.hpp"

namespace lenet {

MakeModel lenet_on_cpu();
BuildOnGpu lenet_on_gpu();

}  // namespace lenet
