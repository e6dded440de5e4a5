// The models by oneDNN; empty in a build without it.
#pragma once

#include "task.hpp"

namespace lenet {

MakeModel lenet_on_cpu();
MakeModel resnet18_on_cpu();
MakeModel spirals_on_cpu();

}  // namespace lenet
