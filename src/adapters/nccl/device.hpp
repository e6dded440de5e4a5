// What the functions of NCCL need of CUDA's runtime beside Rondo's own communicators.
#pragma once

#include <cstddef>

#include <rondo/cuda.hpp>

namespace rondo::nccl_programs {

// The device of this thread.
int current_device();
void use_device(int device);

// Device memory. All of this throws CudaError.
void* allocate(std::size_t bytes);
void release(void* memory);

// A copy of device memory, from the place of the stream at which it is made to that at which it is
// destroyed.
class CopyOnStream {
 public:
  CopyOnStream(const void* original, std::size_t bytes, cuda::Stream stream);
  CopyOnStream(const CopyOnStream&) = delete;
  CopyOnStream& operator=(const CopyOnStream&) = delete;
  ~CopyOnStream();
  [[nodiscard]] const void* data() const { return memory_; }

 private:
  void* memory_ = nullptr;
  [[maybe_unused]] cuda::Stream stream_;  // of builds with CUDA
};

}  // namespace rondo::nccl_programs
