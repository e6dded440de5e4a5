#include <rondo/cuda.hpp>
#include <rondo/errors.hpp>

#include "adapters/nccl/device.hpp"

namespace rondo::nccl_programs {

int current_device() { throw CudaError(cuda::why_no_device()); }
void use_device(int /*device*/) { throw CudaError(cuda::why_no_device()); }
void* allocate(std::size_t /*bytes*/) { throw CudaError(cuda::why_no_device()); }
void release(void* /*memory*/) { throw CudaError(cuda::why_no_device()); }

CopyOnStream::CopyOnStream(const void* /*original*/, std::size_t /*bytes*/, cuda::Stream stream)
    : stream_(stream) {
  throw CudaError(cuda::why_no_device());
}
CopyOnStream::~CopyOnStream() = default;

}  // namespace rondo::nccl_programs
