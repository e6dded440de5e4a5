#include <rondo/registered_memory.hpp>

#include <cstring>
#include <limits>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "memory/process_arena.hpp"

namespace rondo {

void* allocate_elements(std::size_t count, std::size_t element_bytes) {
  constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
  if (count > kMost / element_bytes) {
    throw UsageError(fmt::format("allocate({}): {} elements of {} bytes exceed the address space",
                                 count, count, element_bytes));
  }
  const std::size_t bytes = count * element_bytes;
  void* elements = detail::allocate_reachable(bytes, detail::page_bytes());
  std::memset(elements, 0, bytes);
  return elements;
}

void free_elements(void* elements) noexcept { detail::free_reachable(elements); }

}  // namespace rondo
