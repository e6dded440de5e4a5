// Memory that a call takes for itself.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "carrier/memory.hpp"

namespace rondo::detail {

// Throws TransportError where there is no room for it.
template <class T>
std::vector<T> take_scratch(std::size_t count) {
  constexpr std::size_t kWorthALook = std::size_t{1} << 20U;  // at the limits, which takes a while
  const std::size_t bytes = count * sizeof(T);
  if (bytes >= kWorthALook) require_room(bytes);
  try {
    return std::vector<T>(count);
  } catch (const std::bad_alloc&) {
    throw TransportError(fmt::format(
        "there is no memory for the {} KiB that the call needs beside the buffers; allow the "
        "process more (ulimit -v, cgroup)",
        (bytes + 1023) / 1024));
  }
}

}  // namespace rondo::detail
