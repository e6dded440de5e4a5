#include "allocator.hpp"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <cstdint>
#include <cstring>
#include <mutex>
#include <unordered_set>

#include <rondo/memory.h>

#include "torch_types.hpp"

namespace rondo::torch_backend {
namespace {

constexpr std::size_t kLeastBytes = std::size_t{64} << 10U;

// Which blocks come from Rondo: the deleter gets nothing except the address. There are few.
std::mutex& lock() {
  static auto* const mutex = new std::mutex();
  return *mutex;
}
std::unordered_set<void*>& blocks() {
  static auto* const set = new std::unordered_set<void*>();
  return *set;
}

void release(void* memory) {
  if (memory == nullptr) return;
  // What is from Rondo is aligned to a page, so most others are told apart without the lock.
  constexpr std::uintptr_t kPage = 4096;
  if (reinterpret_cast<std::uintptr_t>(memory) % kPage == 0) {
    const std::lock_guard held(lock());
    if (blocks().erase(memory) > 0) {
      rondo_free(memory);
      return;
    }
  }
  c10::free_cpu(memory);
}

class ReachableAllocator final : public c10::Allocator {
 public:
#if defined(TORCH_OF_1)
  c10::DataPtr allocate(std::size_t bytes) const override { return allocated(bytes); }
#else
  c10::DataPtr allocate(std::size_t bytes) override { return allocated(bytes); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
#endif
  c10::DeleterFnPtr raw_deleter() const override { return &release; }

 private:
  static c10::DataPtr allocated(std::size_t bytes) {
    void* memory = reachable(bytes);
    if (memory == nullptr) memory = c10::alloc_cpu(bytes);
    return {memory, memory, &release, c10::Device(c10::DeviceType::CPU)};
  }
  // Null where torch's own memory is to be used.
  static void* reachable(std::size_t bytes) {
    if (bytes < kLeastBytes) return nullptr;
    void* const memory = rondo_malloc(bytes);
    if (memory == nullptr) return nullptr;
    const std::lock_guard held(lock());
    blocks().insert(memory);
    return memory;
  }
};

}  // namespace

void use_reachable_allocator() {
  static auto* const allocator = new ReachableAllocator();
  c10::SetCPUAllocator(allocator, 1);
}

}  // namespace rondo::torch_backend
