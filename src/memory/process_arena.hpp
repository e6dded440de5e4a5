// The arena of this process, and the memory that programs get of it.
#pragma once

#include <cstddef>

#include "memory/arena.hpp"

namespace rondo::detail {

// Makes the arena when it is first called. Returns null if the system gives none, and has said so
// in the log. A forked child has an arena of its own: it shares the pages of its parent's arena,
// and what it frees of those stays allocated.
Arena* process_arena();

// Smaller objects are ordinary memory: direct carries no call as small as that, and objects that
// share a page could not be made private one by one.
inline constexpr std::size_t kLeastReachableBytes = 2048;

// Memory of the arena; ordinary memory if there is none, or for a small object that is not aligned
// to a page. Throws TransportError if there is too little.
void* allocate_reachable(std::size_t bytes, std::size_t alignment);
// `data`: what allocate_reachable() has returned, or null. Any thread may call.
void free_reachable(void* data) noexcept;
// As rondo::hide_reachable_memory_from_children.
void hide_arena_from_children(bool hide);
// How many bytes `data` has, at least.
std::size_t usable_bytes_of(void* data);

}  // namespace rondo::detail
