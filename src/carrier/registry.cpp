#include "carrier/registry.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "fifo/atomics.hpp"

namespace rondo::detail {

void RegisteredBlock::map_pages() { populate(pieces_.mapping.data(), pieces_.mapping.bytes()); }

void RegisteredBlock::free_own() {
  // A forked child has a copy of the owner, but it is the parent's memory.
  if (!owner_process_.is_this()) return;
  // The first gives shared pages back, the second private ones; each refuses the other kind.
  ::madvise(own(), pieces_.bytes, MADV_REMOVE);
  ::madvise(own(), pieces_.bytes, MADV_DONTNEED);
  // Release pairs with the acquire in all_have_freed(): whoever finds the word set may unmap.
  store_release(*pieces_.freed[static_cast<std::size_t>(pieces_.rank)], 1);
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
    return true;
  }
  ::munmap(copy, length);
  return false;
}

void Registry::add(std::shared_ptr<RegisteredBlock> block, std::size_t most_bytes) {
  std::erase_if(entries_, [](const Entry& entry) { return entry.block->all_have_freed(); });
  entries_.push_back({next_location_, std::move(block)});
  next_location_ += most_bytes;
}

const Registry::Entry* Registry::entry_with(const std::byte* data) const {
  for (const Entry& entry : entries_) {
    const std::byte* own = entry.block->own();
    if (data >= own && data < own + entry.block->bytes()) return &entry;
  }
  return nullptr;
}

std::uint64_t Registry::location_of(const void* data, std::size_t bytes) const {
  if (one_process_) return reinterpret_cast<std::uintptr_t>(data);
  const auto* begin = static_cast<const std::byte*>(data);
  const Entry* entry = entry_with(begin);
  if (entry == nullptr) return kUnreachable;
  const auto offset = static_cast<std::size_t>(begin - entry->block->own());
  return bytes <= entry->block->bytes() - offset ? entry->first_location + offset : kUnreachable;
}

std::byte* Registry::find(int rank, std::uint64_t location) const {
  // The location is the address: a word, since it may come from another process.
  if (one_process_)
    return reinterpret_cast<std::byte*>(location);  // NOLINT(performance-no-int-to-ptr)
  const auto after = std::upper_bound(
      entries_.begin(), entries_.end(), location,
      [](std::uint64_t wanted, const Entry& e) { return wanted < e.first_location; });
  const Entry& entry = *std::prev(after);
  return entry.block->piece(rank) + (location - entry.first_location);
}

bool Registry::make_private(const void* data, std::size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  const Entry* entry = bytes > 0 ? entry_with(begin) : nullptr;
  return entry == nullptr || entry->block->make_private(begin, bytes);
}

}  // namespace rondo::detail
