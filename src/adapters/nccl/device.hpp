// What the functions of NCCL need of CUDA's runtime beside Rondo's own communicators.
#pragma once

#include <cstddef>

namespace rondo::nccl_programs {

// The device of this thread.
int current_device();
void use_device(int device);

// Device memory. Both throw CudaError.
void* allocate(std::size_t bytes);
void release(void* memory);

}  // namespace rondo::nccl_programs
