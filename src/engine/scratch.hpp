// Takes memory that a call needs for itself.
#pragma once

#include <cstddef>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "carrier/reserving_turn.hpp"
#include "memory/memory_limits.hpp"
#include "memory/shared_memory.hpp"

namespace rondo::detail {

[[noreturn]] inline void throw_no_scratch(std::size_t bytes, const std::string& why) {
  throw TransportError(fmt::format(
      "the call needs {} KiB of memory beside the buffers, and {}; allow the process more (ulimit "
      "-v, cgroup, docker run --memory)",
      (bytes + 1023) / 1024, why));
}

// Throws TransportError if there is no room for it. `turn`: the turn of the ranks of this host,
// which take scratch memory in the same calls.
template <class T>
std::vector<T> take_scratch(ReservingTurn& turn, std::size_t count) {
  // Looking at the limits takes a while, so this thread looks once for each size; the heap may keep
  // the memory of the last call.
  thread_local std::size_t most_bytes = std::size_t{1} << 20U;
  const std::size_t bytes = count * sizeof(T);
  std::optional<ReservingScope> reserving;
  if (bytes > most_bytes) {
    reserving.emplace(turn, bytes);
    for (const MemoryLimit& limit : memory_limits()) {
      if (has_room(limit, bytes)) continue;
      throw_no_scratch(bytes, fmt::format("{} KiB are left", limit.room_bytes / 1024));
    }
    most_bytes = bytes;
  }
  try {
    return std::vector<T>(count);
  } catch (const std::bad_alloc&) {
    throw_no_scratch(bytes, "there is none");
  }
}

}  // namespace rondo::detail
