// What torch calls things, which differs between its releases.
#pragma once

#include <torch/version.h>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>

#if TORCH_VERSION_MAJOR < 2
#define TORCH_OF_1
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#else
#include <torch/csrc/distributed/c10d/Backend.hpp>
#endif

namespace rondo::torch_backend {

#if defined(TORCH_OF_1)
using Base = c10d::ProcessGroup;
#else
using Base = c10d::Backend;
#endif
using BasePtr = c10::intrusive_ptr<Base>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<std::vector<at::Tensor>>;

}  // namespace rondo::torch_backend
