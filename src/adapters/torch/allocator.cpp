#include "allocator.hpp"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <pthread.h>

#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>

#include <rondo/reachable_memory.hpp>

#include "torch_types.hpp"

namespace rondo::torch_backend {
namespace {

constexpr std::size_t kLeastBytes = std::size_t{64} << 10U;
// Of what is from Rondo. Most other blocks are told apart by it without the lock.
constexpr std::size_t kAlignment = 4096;

// The blocks that come from Rondo, and their bytes: the deleter gets nothing except the address.
struct Blocks {
  std::mutex mutex;
  std::unordered_map<void*, std::size_t> bytes;
};
Blocks& blocks() {
  static auto* const made = [] {
    // A child that is forked gets the lock free, whatever other threads do.
    ::pthread_atfork([] { blocks().mutex.lock(); }, [] { blocks().mutex.unlock(); },
                     [] { blocks().mutex.unlock(); });
    return new Blocks();
  }();
  return *made;
}

void* take(std::size_t bytes) {
  try {
    void* const memory = reachable_memory().allocate(bytes, kAlignment);
    const std::lock_guard held(blocks().mutex);
    blocks().bytes.emplace(memory, bytes);
    return memory;
  } catch (const std::exception&) {
    return nullptr;  // torch's own memory serves, too
  }
}

void release(void* memory) {
  if (memory == nullptr) return;
  if (reinterpret_cast<std::uintptr_t>(memory) % kAlignment == 0) {
    std::size_t bytes = 0;
    {
      const std::lock_guard held(blocks().mutex);
      const auto found = blocks().bytes.find(memory);
      if (found != blocks().bytes.end()) {
        bytes = found->second;
        blocks().bytes.erase(found);
      }
    }
    if (bytes > 0) {
      reachable_memory().deallocate(memory, bytes, kAlignment);
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
    void* memory = bytes < kLeastBytes ? nullptr : take(bytes);
    if (memory == nullptr) memory = c10::alloc_cpu(bytes);
    return {memory, memory, &release, c10::Device(c10::DeviceType::CPU)};
  }
};

}  // namespace

c10::Allocator& reachable_allocator() {
  static auto* const allocator = new ReachableAllocator();
  return *allocator;
}

void use_reachable_allocator() { c10::SetCPUAllocator(&reachable_allocator(), 1); }

}  // namespace rondo::torch_backend
