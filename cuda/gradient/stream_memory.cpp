#include "gradient/stream_memory.hpp"

#include <algorithm>

#include "api/handles.hpp"
#include "kernels/launch.hpp"

namespace rondo::detail::gpu {
namespace {

// The caller must have the device in use.
class MemoryOnDevice final : public BucketMemory {
 public:
  MemoryOnDevice(int device, api::Stream stream, OperationsAhead& ahead)
      : device_(device), stream_(stream), ahead_(ahead) {}

  Owner allocate(std::size_t bytes) override {
    const auto memory = std::make_shared<DeviceMemory>(device_, std::max<std::size_t>(bytes, 1));
    return {memory, memory->data()};
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    api::copy_async(to, from, bytes, stream_);
    ahead_.enqueued(1, stream_);
  }
  void settle() override { api::wait_for(stream_); }
  void clear(void* memory, std::size_t bytes) override {
    api::clear_async(memory, bytes, stream_);
    ahead_.enqueued(1, stream_);
  }
  void scale(void* to, DataType to_type, const void* from, DataType from_type, std::size_t count,
             double factor) override {
    kernels::scale_async(to, to_type, from, from_type, count, factor, stream_);
    ahead_.enqueued(1, stream_);
  }

 private:
  int device_;
  api::Stream stream_;
  OperationsAhead& ahead_;
};

}  // namespace

std::unique_ptr<BucketMemory> memory_on(int device, api::Stream stream, OperationsAhead& ahead) {
  return std::make_unique<MemoryOnDevice>(device, stream, ahead);
}

}  // namespace rondo::detail::gpu
