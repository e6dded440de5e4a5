// The models by cuDNN; empty in a build without it.
#pragma once

#include "task.hpp"

namespace lenet {

BuildOnGpu lenet_on_gpu();
BuildOnGpu resnet18_on_gpu();
BuildOnGpu spirals_on_gpu();

}  // namespace lenet
