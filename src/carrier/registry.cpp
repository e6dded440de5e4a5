#include "carrier/registry.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "base/index.hpp"
#include "fifo/atomics.hpp"

namespace rondo::detail {

void RegisteredBlock::map_pages() { populate(pieces_.mapping.data(), pieces_.mapping.bytes()); }

void RegisteredBlock::free_own() {
  // A forked child has a copy of the owner, but it is the parent's memory.
  if (!owner_process_.is_this()) return;
  // Shared pages are given back by the first, private ones by the second. The first stops where
  // private pages begin.
  std::sort(private_.begin(), private_.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::size_t shared_from = 0;
  for (const Range& range : private_) {
    if (range.begin > shared_from)
      ::madvise(own() + shared_from, range.begin - shared_from, MADV_REMOVE);
    shared_from = std::max(shared_from, range.end);
  }
  if (shared_from < pieces_.bytes)
    ::madvise(own() + shared_from, pieces_.bytes - shared_from, MADV_REMOVE);
  ::madvise(own(), pieces_.bytes, MADV_DONTNEED);
  // Release pairs with the acquire in all_have_freed(): whoever finds the word set may unmap.
  store_release(*pieces_.freed[Index(pieces_.rank)], 1);
}

bool RegisteredBlock::all_have_freed() const {
  return std::all_of(pieces_.freed.begin(), pieces_.freed.end(), [](std::uint64_t* word) {
    return word == nullptr || load_acquire(*word) != 0;
  });
}

bool RegisteredBlock::make_private(const std::byte* data, std::size_t bytes) {
  const std::size_t page = page_bytes();
  const auto offset = static_cast<std::size_t>(data - own());
  const std::size_t first = offset / page * page;
  const std::size_t length = (offset + bytes + page - 1) / page * page - first;
  void* copy = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return false;
  std::memcpy(copy, own() + first, length);
  if (::mremap(copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, own() + first) != MAP_FAILED) {
    private_.push_back({first, first + length});
    return true;
  }
  ::munmap(copy, length);
  return false;
}

void Registry::add(std::shared_ptr<RegisteredBlock> block, std::size_t most_bytes) {
  std::erase_if(blocks_, [](const LocatedBlock& one) { return one.block->all_have_freed(); });
  blocks_.push_back({next_location_, std::move(block)});
  next_location_ += most_bytes;
  own_pieces_.clear();
  for (const LocatedBlock& one : blocks_) {
    own_pieces_.push_back({one.block->own(), one.first_location, one.block.get()});
  }
  std::sort(own_pieces_.begin(), own_pieces_.end(),
            [](const OwnPiece& a, const OwnPiece& b) { return a.begin < b.begin; });
}

const Registry::OwnPiece* Registry::own_piece_with(const std::byte* data) const {
  const auto after = std::upper_bound(
      own_pieces_.begin(), own_pieces_.end(), data,
      [](const std::byte* wanted, const OwnPiece& piece) { return wanted < piece.begin; });
  if (after == own_pieces_.begin()) return nullptr;
  const OwnPiece& piece = *std::prev(after);
  return data < piece.begin + piece.block->bytes() ? &piece : nullptr;
}

std::uint64_t Registry::location_of(const void* data, std::size_t bytes) const {
  if (one_process_) return reinterpret_cast<std::uintptr_t>(data);
  const auto* begin = static_cast<const std::byte*>(data);
  const OwnPiece* piece = own_piece_with(begin);
  if (piece == nullptr) return kUnreachable;
  const auto offset = static_cast<std::size_t>(begin - piece->begin);
  return bytes <= piece->block->bytes() - offset ? piece->first_location + offset : kUnreachable;
}

std::byte* Registry::find(int rank, std::uint64_t location) const {
  // Among ranks of one process a location is the address itself.
  if (one_process_)
    return reinterpret_cast<std::byte*>(location);  // NOLINT(performance-no-int-to-ptr)
  const auto after = std::upper_bound(
      blocks_.begin(), blocks_.end(), location,
      [](std::uint64_t wanted, const LocatedBlock& one) { return wanted < one.first_location; });
  const LocatedBlock& one = *std::prev(after);
  return one.block->piece(rank) + (location - one.first_location);
}

bool Registry::make_private(const void* data, std::size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  const OwnPiece* piece = bytes > 0 ? own_piece_with(begin) : nullptr;
  return piece == nullptr || piece->block->make_private(begin, bytes);
}

}  // namespace rondo::detail
