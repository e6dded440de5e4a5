#include "gradient/bucket_memory.hpp"

#include <cstdint>
#include <cstring>

#include "communicator/allocate_together.hpp"
#include "reduce/scale.hpp"

namespace rondo::detail {
namespace {

class HostMemory final : public BucketMemory {
 public:
  explicit HostMemory(Communicator& communicator) : communicator_(communicator) {}

  Owner allocate(std::size_t bytes) override {
    const auto memory =
        std::make_shared<RegisteredMemory<std::uint8_t>>(allocate_together(communicator_, bytes));
    return {memory, reinterpret_cast<std::byte*>(memory->data())};
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void settle() override {}
  void clear(void* memory, std::size_t bytes) override { std::memset(memory, 0, bytes); }
  void scale(void* to, DataType to_type, const void* from, DataType from_type, std::size_t count,
             double factor) override {
    detail::scale(to, to_type, from, from_type, count, factor);
  }

 private:
  Communicator& communicator_;
};

}  // namespace

std::unique_ptr<BucketMemory> host_memory(Communicator& communicator) {
  return std::make_unique<HostMemory>(communicator);
}

}  // namespace rondo::detail
