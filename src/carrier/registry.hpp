// Memory of a rank that the other ranks of its host can read and write, and where each rank finds
// the others'.
//
// A rank names a place in its memory by a word, its location, which it shows to the others in a
// call. Among ranks of one process that word is the address. Among processes every rank has mapped
// the registered memory of the others, somewhere else than they have; there, locations count
// through all blocks that were registered, in the same order on all ranks.
//
// Example: four processes register a block of at most 8 KiB each, then one of 4 KiB. Byte 100 of a
// rank's second block has the location 2 + 8192 + 100, whichever rank's it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/index.hpp"
#include "base/owner_process.hpp"
#include "carrier/memory.hpp"

namespace rondo::detail {

// Two locations that name no memory: the first stands for memory that the others cannot reach, the
// second for a buffer of which nothing is needed.
inline constexpr std::uint64_t kUnreachable = 0;
inline constexpr std::uint64_t kNothingNeeded = 1;
inline constexpr std::uint64_t kFirstLocation = 2;

// This is what the ranks of a host registered together: a piece for each of them, in one mapping.
// The rank's own piece is given back to the system when the rank frees it; its mapping of the
// others' pieces stays until all have freed theirs, since they may still pass them to calls.
class RegisteredBlock {
 public:
  // Where each rank's piece lies, null if the rank is on another host; and where its word in
  // `freed` lies.
  struct Pieces {
    Mapping mapping;
    std::vector<std::byte*> data;
    std::vector<std::uint64_t*> freed;
    int rank = 0;           // whose own the memory is
    std::size_t bytes = 0;  // of its own piece, in whole pages
  };

  explicit RegisteredBlock(Pieces pieces) : pieces_(std::move(pieces)) {}
  RegisteredBlock(const RegisteredBlock&) = delete;
  RegisteredBlock& operator=(const RegisteredBlock&) = delete;
  ~RegisteredBlock() = default;

  [[nodiscard]] std::byte* own() const { return piece(pieces_.rank); }
  [[nodiscard]] std::byte* piece(int rank) const { return pieces_.data[Index(rank)]; }
  [[nodiscard]] std::size_t bytes() const { return pieces_.bytes; }

  // Enters all pages in this process's page table, so that no call has to wait for that.
  void map_pages();

  // The rank that owns the piece calls this once: it will not use the piece again.
  void free_own();
  [[nodiscard]] bool all_have_freed() const;

  // For a rank whose call has failed while another may still write: replaces all pages that hold
  // these bytes, at least one and all of the own piece, by private memory with the same contents at
  // the same addresses. From then on neither side sees what the other writes there. Returns false,
  // and has changed nothing, if there is no memory for that.
  bool make_private(const std::byte* data, std::size_t bytes);

 private:
  struct Range {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  Pieces pieces_;
  std::vector<Range> private_;  // of the own piece, in bytes
  OwnerProcess owner_process_;
};

// What ranks of a group reach of each other's memory, as this rank sees it. The functions that are
// const may run at the same time; none of them may run during add().
class Registry {
 public:
  // `one_process`: all ranks of the group are in this process, and reach all memory.
  explicit Registry(bool one_process) : one_process_(one_process) {}

  [[nodiscard]] bool one_process() const { return one_process_; }
  // Says whether ranks can reach some memory of each other. The answer is the same on all ranks.
  [[nodiscard]] bool reaches_any() const {
    return one_process_ || next_location_ != kFirstLocation;
  }

  // Collective, in the order of calls: adds a block that all ranks have registered, and forgets
  // those that all have freed. `most_bytes`: of the largest piece of any rank.
  void add(std::shared_ptr<RegisteredBlock> block, std::size_t most_bytes);

  // Returns the location of this rank's memory; kUnreachable if not all of it is reachable.
  [[nodiscard]] std::uint64_t location_of(const void* data, std::size_t bytes) const;
  // Returns the address at which this process reaches what `rank` showed as `location`. The caller
  // knows that the rank is on this host and that the location names memory; nothing is checked
  // here.
  [[nodiscard]] std::byte* find(int rank, std::uint64_t location) const;

  // Calls RegisteredBlock::make_private of the block that holds these bytes, if one does.
  bool make_private(const void* data, std::size_t bytes);

 private:
  struct LocatedBlock {
    std::uint64_t first_location = 0;
    std::shared_ptr<RegisteredBlock> block;
  };
  // The rank's own piece of a block.
  struct OwnPiece {
    const std::byte* begin = nullptr;
    std::uint64_t first_location = 0;
    RegisteredBlock* block = nullptr;
  };
  // Every call looks for its buffers, whether they are registered or not: so the search takes few
  // steps, however many blocks there are.
  [[nodiscard]] const OwnPiece* own_piece_with(const std::byte* data) const;

  bool one_process_;
  std::uint64_t next_location_ = kFirstLocation;
  std::vector<LocatedBlock> blocks_;  // in the order of locations
  std::vector<OwnPiece> own_pieces_;  // in the order of addresses
};

}  // namespace rondo::detail
