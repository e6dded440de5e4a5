#include "cuda/gradient/stream_memory.hpp"

#include <cstdint>

#include "cuda/api/enqueue_turn.hpp"
#include "cuda/kernels/launch.hpp"

namespace rondo::detail::gpu {
namespace {

// The caller must have the device in use.
class MemoryOnDevice final : public BucketMemory {
 public:
  MemoryOnDevice(cuda::Communicator& communicator, api::Stream stream, OperationsAhead& ahead)
      : communicator_(communicator), stream_(stream), ahead_(ahead) {}

  Owner allocate(std::size_t bytes) override {
    const auto memory = std::make_shared<cuda::RegisteredMemory<std::uint8_t>>(
        communicator_.allocate<std::uint8_t>(bytes));
    return {memory, reinterpret_cast<std::byte*>(memory->data())};
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    enqueue([&] { api::copy_async(to, from, bytes, stream_); });
  }
  void settle() override { api::wait_for(stream_); }
  void clear(void* memory, std::size_t bytes) override {
    enqueue([&] { api::clear_async(memory, bytes, stream_); });
  }
  void scale(void* to, DataType to_type, const void* from, DataType from_type, std::size_t count,
             double factor) override {
    enqueue([&] { kernels::scale_async(to, to_type, from, from_type, count, factor, stream_); });
  }

 private:
  template <class Operation>
  void enqueue(Operation&& operation) {
    {
      const auto turn = turn_to_enqueue(communicator_.device());
      operation();
    }
    ahead_.enqueued(1, stream_);
  }

  cuda::Communicator& communicator_;
  api::Stream stream_;
  OperationsAhead& ahead_;
};

}  // namespace

std::unique_ptr<BucketMemory> device_memory(cuda::Communicator& communicator, api::Stream stream,
                                            OperationsAhead& ahead) {
  return std::make_unique<MemoryOnDevice>(communicator, stream, ahead);
}

}  // namespace rondo::detail::gpu
