// The arenas of other processes of this host, as this process has mapped them.
#pragma once

#include <cstdint>
#include <memory>

#include "memory/arena.hpp"

namespace rondo::detail {

// What an arena's file is known by on its host, as long as some process has it.
struct ArenaName {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;  // 0: there is no arena

  friend bool operator==(const ArenaName&, const ArenaName&) = default;
};

ArenaName name_of(const Arena& arena);
// Of the arena in this file; nothing of one if it has another size or kind.
ArenaName name_of(const FileDescriptor& file);

// An arena that this process has mapped, once for all communicators: unmapped with the last owner.
using PeerArena = std::shared_ptr<const Mapping>;

// Null if this process has not mapped it.
PeerArena mapped_arena(const ArenaName& name);
// Maps it. Throws TransportError unless it is the file of an arena by that name.
PeerArena map_arena(const FileDescriptor& file, const ArenaName& name);

// A thread that forks has the list of mapped arenas, so that no other is in the middle of a change.
void lock_mapped_arenas();
void unlock_mapped_arenas();

}  // namespace rondo::detail
