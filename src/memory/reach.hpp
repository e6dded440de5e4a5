// What the ranks of a group reach of each other's memory, as one rank sees it.
//
// A rank shows the others in a call where its buffers are, by a word each: the location. Among
// ranks of one process that word is the address. Among processes it is the place in the arena of
// the rank's process, and the others find it in their mapping of that arena.
//
// Example: rank 2 passes memory at byte 4096 of its arena, which rank 0 has mapped at address A. It
// shows 2 + 4096 in its Presence, and rank 0 reads and writes at A + 4096.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/index.hpp"
#include "memory/arena.hpp"
#include "memory/peer_arena.hpp"

namespace rondo::detail {

// Two locations that name no memory: the first stands for memory that the others cannot reach, the
// second for a buffer of which nothing is needed.
inline constexpr std::uint64_t kUnreachable = 0;
inline constexpr std::uint64_t kNothingNeeded = 1;
inline constexpr std::uint64_t kFirstLocation = 2;

// Any thread may call.
class Reach {
 public:
  // Where a rank's arena is mapped in this process.
  struct RankArena {
    std::byte* data = nullptr;  // null for ranks of other hosts
    PeerArena owner;            // null for ranks of this process
  };

  // Reaches nothing.
  Reach() = default;
  // Of ranks that are all in this process.
  static Reach in_one_process();
  // `own`: the arena of this process; `by_rank`: those of all ranks.
  Reach(Arena& own, std::vector<RankArena> by_rank) : own_(&own), by_rank_(std::move(by_rank)) {}

  [[nodiscard]] bool one_process() const { return one_process_; }
  // Says whether ranks can reach some memory of each other. The answer is the same on all ranks.
  [[nodiscard]] bool reaches_any() const { return one_process_ || own_ != nullptr; }

  // Returns the location of this rank's memory; kUnreachable if not all of it is reachable.
  [[nodiscard]] std::uint64_t location_of(const void* data, std::size_t bytes) const;
  // Returns the address at which this process reaches what `rank` showed as `location`. The caller
  // knows that the rank is on this host and that the location names memory; nothing is checked
  // here.
  [[nodiscard]] std::byte* find(int rank, std::uint64_t location) const {
    // Among ranks of one process a location is the address itself.
    if (one_process_)
      return reinterpret_cast<std::byte*>(location);  // NOLINT(performance-no-int-to-ptr)
    return by_rank_[Index(rank)].data + (location - kFirstLocation);
  }

  // To be held while other ranks may use these locations of this rank.
  [[nodiscard]] Arena::Use use(std::uint64_t in, std::size_t in_bytes, std::uint64_t out,
                               std::size_t out_bytes) const;
  // Calls Arena::make_private, if the arena has these bytes.
  [[nodiscard]] bool make_private(const void* data, std::size_t bytes) const;

 private:
  bool one_process_ = false;
  Arena* own_ = nullptr;
  std::vector<RankArena> by_rank_;
};

}  // namespace rondo::detail
