#include <rondo/reachable_memory.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>

#include <rondo/memory.h>
#include <rondo/errors.hpp>

#include "memory/process_arena.hpp"

namespace rondo {
namespace {

class ReachableMemory final : public std::pmr::memory_resource {
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    try {
      return detail::allocate_reachable(bytes, alignment);
    } catch (const TransportError&) {
      throw std::bad_alloc();
    }
  }
  void do_deallocate(void* data, std::size_t /*bytes*/, std::size_t /*alignment*/) override {
    detail::free_reachable(data);
  }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }
};

}  // namespace

std::pmr::memory_resource& reachable_memory() {
  // Never destroyed, since containers may be destroyed later than it.
  static auto* resource = new ReachableMemory;
  return *resource;
}

void hide_reachable_memory_from_children(bool hide) { detail::hide_arena_from_children(hide); }

}  // namespace rondo

void* rondo_malloc(std::size_t bytes) noexcept {
  try {
    return rondo::detail::allocate_reachable(bytes, alignof(std::max_align_t));
  } catch (...) {
    errno = ENOMEM;
    return nullptr;
  }
}

void rondo_free(void* memory) noexcept { rondo::detail::free_reachable(memory); }

void* rondo_realloc(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr) return rondo_malloc(bytes);
  if (bytes == 0) {
    rondo_free(memory);
    return nullptr;
  }
  const std::size_t usable = rondo::detail::usable_bytes_of(memory);
  if (bytes <= usable && bytes > usable / 2) return memory;
  void* other = rondo_malloc(bytes);
  if (other == nullptr) return nullptr;
  std::memcpy(other, memory, std::min(usable, bytes));
  rondo_free(memory);
  return other;
}
