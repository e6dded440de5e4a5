#include "gradient/bucket_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "reduce/scale.hpp"

namespace rondo::detail {
namespace {

class HostMemory final : public BucketMemory {
 public:
  Owner allocate(std::size_t bytes) override {
    constexpr std::size_t kLine = 64;
    const std::size_t whole = std::max((bytes + kLine - 1) / kLine * kLine, kLine);
    Owner memory(static_cast<std::byte*>(std::aligned_alloc(kLine, whole)), std::free);
    if (!memory) throw std::bad_alloc();
    std::memset(memory.get(), 0, whole);
    return memory;
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
};

}  // namespace

std::unique_ptr<BucketMemory> host_memory() { return std::make_unique<HostMemory>(); }

}  // namespace rondo::detail
