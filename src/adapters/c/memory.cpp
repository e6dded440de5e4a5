#include <rondo/memory.h>

#include <cerrno>
#include <cstddef>
#include <memory>

#include <rondo/adopt.hpp>
#include <rondo/reachable_memory.hpp>
#include <rondo/registered_memory.hpp>

#include "adapters/c/handles.hpp"

namespace c = rondo::c_interface;

struct rondo_adopted {
  rondo::AdoptedMemory memory;
};

void* rondo_calloc(std::size_t count, std::size_t element_bytes) noexcept {
  try {
    return rondo::allocate_elements(count, element_bytes == 0 ? 1 : element_bytes);
  } catch (...) {
    errno = ENOMEM;
    return nullptr;
  }
}

rondo_status rondo_hide_reachable_memory(int hide) noexcept {
  return c::status_of([&] { rondo::hide_reachable_memory_from_children(hide != 0); });
}

rondo_status rondo_adopt(void* memory, std::size_t bytes, rondo_adopted** adopted) noexcept {
  if (adopted != nullptr) *adopted = nullptr;
  return c::status_of([&] {
    rondo_adopted*& result = c::required(adopted, "adopted");
    // Made before the pages move, since no memory may be allocated meanwhile.
    auto made = std::make_unique<rondo_adopted>();
    made->memory = rondo::adopt(memory, bytes);
    result = made.release();
  });
}

void rondo_adopted_destroy(rondo_adopted* adopted) noexcept { delete adopted; }
