#include <cuda_runtime_api.h>

#include <string>

#include <rondo/errors.hpp>

#include "adapters/nccl/device.hpp"

namespace rondo::nccl_programs {
namespace {

void check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  throw CudaError(std::string(call) + " failed: " + cudaGetErrorString(code));
}

}  // namespace

int current_device() {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}
void use_device(int device) { check(cudaSetDevice(device), "cudaSetDevice"); }

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "cudaMalloc");
  return memory;
}
void release(void* memory) { check(cudaFree(memory), "cudaFree"); }

CopyOnStream::CopyOnStream(const void* original, std::size_t bytes, cuda::Stream stream)
    : stream_(stream) {
  check(cudaMallocAsync(&memory_, bytes, stream), "cudaMallocAsync");
  const cudaError_t copied =
      cudaMemcpyAsync(memory_, original, bytes, cudaMemcpyDeviceToDevice, stream);
  if (copied == cudaSuccess) return;
  static_cast<void>(cudaFreeAsync(memory_, stream_));
  check(copied, "cudaMemcpyAsync");
}
CopyOnStream::~CopyOnStream() { static_cast<void>(cudaFreeAsync(memory_, stream_)); }

}  // namespace rondo::nccl_programs
