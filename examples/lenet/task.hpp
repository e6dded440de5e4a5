// The task of rondo-lenet: LeNet on images of 28×28 pixels in 10 classes.
#pragma once

#include "examples/layers/task.hpp"

namespace lenet {

// Where Debian's package has Fashion-MNIST.
inline constexpr const char* kFashionMnist = "/usr/share/datasets/fashion-mnist";

const Task& lenet_task();

}  // namespace lenet
