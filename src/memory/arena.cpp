#include "memory/arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "memory/host_turn.hpp"
#include "memory/memory_limits.hpp"

namespace rondo::detail {
namespace {

// As much as the C library keeps: with less, a program that allocates and frees in turn has the
// system reserve the same pages again and again.
constexpr std::size_t kLeastKeptBytes = std::size_t{64} << 20U;
// Below this size an arena is not worth its mappings.
constexpr std::size_t kLeastBytes = std::size_t{16} << 20U;

// What is reserved at once, at least, and aligned so: a huge page, where the system has them. Many
// small requests together cost the system less.
constexpr std::size_t kReservedBytes = std::size_t{2} << 20U;

std::size_t whole(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Whether there might be too little memory if every process of a busy host took as much now.
bool is_scarce_for(std::size_t bytes) {
  constexpr std::uint64_t kPlenty = std::uint64_t{1} << 30U;
  const std::uint64_t processes = std::max(16U, 2 * std::thread::hardware_concurrency());
  const std::vector<MemoryLimit> limits = memory_limits();
  return std::any_of(limits.begin(), limits.end(), [&](const MemoryLimit& limit) {
    return limit.room_bytes < kPlenty || (limit.room_bytes - kPlenty) / processes < bytes;
  });
}

bool populate_private(std::byte* data, std::size_t bytes) {
  if (populate(data, bytes)) return true;
  if (errno != EINVAL) return false;
  // Linux before 5.14: a write that changes nothing, and loses no other.
  for (std::size_t at = 0; at < bytes; at += page_bytes()) {
    std::atomic_ref(reinterpret_cast<std::uint64_t&>(data[at])).fetch_or(0);
  }
  return true;
}

bool has_room_for(std::size_t bytes) {
  try {
    require_room(bytes);
    return true;
  } catch (const TransportError&) {
    return false;
  }
}

// Copies whole pages, and with them objects that the program does not show to Rondo: of those,
// sanitizers would say that nobody may read them.
__attribute__((no_sanitize("address", "thread"))) void copy_pages(std::byte* to,
                                                                  const std::byte* from,
                                                                  std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
    // Volatile, so that the compiler does not make a call of memcpy of the loop.
    *reinterpret_cast<std::uint64_t*>(to + at) =
        *reinterpret_cast<const volatile std::uint64_t*>(from + at);
  }
}

// Has a private copy take the place of these pages.
bool replace_by_copy(std::byte* place, std::size_t bytes) {
  void* copy = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return false;
  copy_pages(static_cast<std::byte*>(copy), place, bytes);
  if (::mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place) != MAP_FAILED) return true;
  ::munmap(copy, bytes);
  return false;
}

// Limits of addresses or of file sizes may allow less than is asked for.
SharedObject create_sparse(std::size_t bytes) {
  bytes = std::max(bytes, kLeastBytes);
  for (;; bytes = whole(bytes / 2, kReservedBytes)) {
    try {
      return create_shared(whole(bytes, kReservedBytes), 0);
    } catch (const TransportError&) {
      if (bytes / 2 < kLeastBytes) throw;
    }
  }
}

}  // namespace

Arena::Arena(std::size_t bytes) : object_(create_sparse(bytes)) {
  advise(data(), this->bytes());
  unused_.add({0, this->bytes()});
}

void Arena::advise(std::byte* data, std::size_t bytes) const {
  // A core dump would read all pages, and so reserve those of the whole file.
  ::madvise(data, bytes, MADV_DONTDUMP);
  ::madvise(data, bytes, MADV_HUGEPAGE);  // the system may decline
  if (hidden_.load(std::memory_order_relaxed)) ::madvise(data, bytes, MADV_DONTFORK);
}

std::byte* Arena::allocate(std::size_t bytes, std::size_t alignment) {
  if (bytes > this->bytes()) throw_full(bytes);
  bytes = whole(std::max<std::size_t>(bytes, 1), page_bytes());
  alignment = std::max(alignment, page_bytes());
  bool reserved = false;
  std::optional<ByteRange> taken = take_any(bytes, alignment, reserved);
  if (!taken) {
    return_to_system(0);
    taken = take_any(bytes, alignment, reserved);
  }
  if (!taken) throw_full(bytes);
  if (!reserved) reserve(*taken);
  const std::lock_guard lock(mutex_);
  kept_.add({taken->offset + bytes, taken->bytes - bytes});
  allocated_.emplace(taken->offset, bytes);
  allocated_bytes_ += bytes;
  return data() + taken->offset;
}

void Arena::free(std::byte* data) {
  ByteRange range{offset_in(data), 0};
  std::size_t most_kept_bytes = kLeastKeptBytes;
  const bool any_private = any_private_.load(std::memory_order_acquire);
  {
    const std::lock_guard lock(mutex_);
    const auto allocated = allocated_.find(range.offset);
    range.bytes = allocated->second;
    allocated_.erase(allocated);
    allocated_bytes_ -= range.bytes;
    // A training step frees about as much as stays (gradients, and the model), and allocates it
    // again in the next one.
    most_kept_bytes = std::max(kLeastKeptBytes, allocated_bytes_);
    if (!any_private) kept_.add(range);
  }
  if (any_private) {
    std::vector<ByteRange> shared;
    {
      const std::lock_guard lock(places_mutex_);
      shared = parts_of(range, false);
      // What is private stays so: those pages of the file are not handed out again. But the copies
      // of this process go.
      for (const ByteRange& part : parts_of(range, true)) {
        ::madvise(this->data() + part.offset, part.bytes, MADV_DONTNEED);
      }
    }
    const std::lock_guard lock(mutex_);
    for (const ByteRange& part : shared) kept_.add(part);
  }
  return_to_system(most_kept_bytes);
}

std::size_t Arena::usable_bytes(std::byte* data) const {
  const std::lock_guard lock(mutex_);
  return allocated_.at(offset_in(data));
}

std::optional<ByteRange> Arena::take_any(std::size_t bytes, std::size_t alignment, bool& reserved) {
  std::unique_lock lock(mutex_);
  for (;;) {
    std::optional<ByteRange> taken = take_kept(bytes, alignment);
    reserved = taken.has_value();
    if (!taken) taken = take_unused(bytes, alignment);
    if (taken || returning_ == 0) return taken;
    returned_.wait(lock);
  }
}

std::optional<ByteRange> Arena::take_kept(std::size_t bytes, std::size_t alignment) {
  const std::optional<std::size_t> offset = kept_.take(bytes, alignment);
  if (!offset) return std::nullopt;
  return ByteRange{*offset, bytes};
}

std::optional<ByteRange> Arena::take_unused(std::size_t bytes, std::size_t alignment) {
  const std::size_t several = whole(bytes, kReservedBytes);
  if (const auto offset = unused_.take(several, std::max(alignment, kReservedBytes))) {
    return ByteRange{*offset, several};
  }
  if (const auto offset = unused_.take(bytes, alignment)) return ByteRange{*offset, bytes};
  return std::nullopt;
}

void Arena::reserve(ByteRange range) {
  // How long it may take others to fill as much.
  const auto patience = std::chrono::seconds(1) + std::chrono::nanoseconds(range.bytes) * 10;
  try {
    std::optional<HostTurn> turn;
    if (is_scarce_for(range.bytes)) turn.emplace(patience);
    touch(object_, range.offset, range.bytes);
  } catch (const std::exception&) {
    return_to_system(0);  // what is kept may be enough
    try {
      const HostTurn turn(patience);
      touch(object_, range.offset, range.bytes);
    } catch (const std::exception&) {
      ::madvise(data() + range.offset, range.bytes, MADV_REMOVE);  // some were reserved
      const std::lock_guard lock(mutex_);
      unused_.add(range);
      throw;
    }
  }
}

void Arena::throw_full(std::size_t bytes) const {
  throw TransportError(
      fmt::format("cannot allocate {} KiB of memory that other processes reach: its {} MiB of "
                  "addresses have no such range left; allow more by RONDO_ARENA_BYTES",
                  (bytes + 1023) / 1024, this->bytes() >> 20U));
}

void Arena::return_to_system(std::size_t most_kept_bytes) {
  for (;;) {
    std::optional<ByteRange> range;
    {
      const std::lock_guard lock(mutex_);
      if (kept_.bytes() <= most_kept_bytes) return;
      range = kept_.take_of_largest(whole(kept_.bytes() - most_kept_bytes, kReservedBytes));
      ++returning_;
    }
    // Not under the lock, since it takes the system long. Locked pages are not given back.
    ::munlock(data() + range->offset, range->bytes);
    ::madvise(data() + range->offset, range->bytes, MADV_REMOVE);
    const std::lock_guard lock(mutex_);
    unused_.add(*range);
    --returning_;
    returned_.notify_all();
  }
}

std::optional<std::uint64_t> Arena::offset_of(const void* data, std::size_t length) const {
  std::size_t offset = offset_in(data);
  if (offset >= bytes()) {
    // Acquire pairs with the release in take_over().
    if (!any_elsewhere_.load(std::memory_order_acquire)) return std::nullopt;
    const std::optional<std::size_t> there = offset_elsewhere(data, length);
    if (!there) return std::nullopt;
    offset = *there;
  }
  if (length > bytes() - offset) return std::nullopt;
  // Acquire pairs with the release in make_private().
  if (!any_private_.load(std::memory_order_acquire)) return offset;
  const std::lock_guard lock(places_mutex_);
  if (parts_of({offset, length}, true).empty()) return offset;
  return std::nullopt;
}

std::vector<ByteRange> Arena::parts_of(ByteRange range, bool are_private) const {
  std::vector<ByteRange> parts;
  const auto add = [&](std::size_t begin, std::size_t end) {
    if (begin < end) parts.push_back({begin, end - begin});
  };
  std::size_t at = range.offset;
  for (const ByteRange& one : private_) {  // in the order of their places
    const std::size_t begin = std::max(one.offset, range.offset);
    const std::size_t end = std::min(one.end(), range.end());
    if (begin >= end) continue;
    if (are_private) {
      add(begin, end);
    } else {
      add(at, begin);
    }
    at = end;
  }
  if (!are_private) add(at, range.end());
  return parts;
}

// Between copying and mapping nothing may write to the heap, whose pages may be those that move: so
// what is to be noted was allocated before, and is noted after that.
bool Arena::take_over(std::byte* place, std::byte* pages, std::size_t bytes) {
  const std::size_t offset = offset_in(pages);
  std::list<Elsewhere> here;
  here.push_back({place, {offset, bytes}});
  copy_pages(pages, place, bytes);
  if (::mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
             file().get(), static_cast<off_t>(offset)) == MAP_FAILED) {
    return false;
  }
  const std::lock_guard lock(places_mutex_);
  elsewhere_.splice(elsewhere_.end(), here);
  // Release pairs with the acquire in offset_of().
  any_elsewhere_.store(true, std::memory_order_release);
  return true;
}

void Arena::forget(const std::byte* place) {
  const std::lock_guard lock(places_mutex_);
  elsewhere_.remove_if([&](const Elsewhere& one) { return one.place == place; });
}

bool Arena::give_back(std::byte* place, std::size_t bytes) {
  return has_room_for(bytes) && replace_by_copy(place, bytes);
}

bool Arena::has_taken_over_any() const {
  const std::lock_guard lock(places_mutex_);
  return !elsewhere_.empty();
}

std::optional<std::size_t> Arena::offset_elsewhere(const void* data, std::size_t length) const {
  const auto* begin = static_cast<const std::byte*>(data);
  const std::lock_guard lock(places_mutex_);
  for (const Elsewhere& one : elsewhere_) {
    const auto distance = static_cast<std::size_t>(begin - one.place);
    if (distance >= one.pages.bytes) continue;
    if (length > one.pages.bytes - distance) return std::nullopt;
    return one.pages.offset + distance;
  }
  return std::nullopt;
}

// The system copies a page at its first write, so that no write of another thread of this process
// is lost; populating the pages copies them all.
bool Arena::make_private(const std::byte* data, std::size_t length) {
  const std::size_t page = page_bytes();
  std::optional<std::size_t> offset = offset_in(data);
  if (!holds(data)) offset = offset_elsewhere(data, length);
  if (!offset) return true;  // nobody reaches it
  const std::size_t first = *offset / page * page;
  const ByteRange pages{first, whole(*offset + length, page) - first};
  auto* begin = const_cast<std::byte*>(data) - *offset % page;
  {
    const std::lock_guard lock(places_mutex_);
    const bool used = std::any_of(in_use_.begin(), in_use_.end(), [&](const ByteRange& one) {
      return one.offset < pages.end() && pages.offset < one.end();
    });
    if (used) return false;
    if (!has_room_for(pages.bytes)) return false;
    for (const ByteRange& part : parts_of(pages, false)) {
      std::byte* at = begin + (part.offset - first);
      // Release pairs with the acquire in offset_of().
      any_private_.store(true, std::memory_order_release);
      const auto next = std::find_if(private_.begin(), private_.end(), [&](const ByteRange& one) {
        return one.offset >= part.offset;
      });
      const auto noted = private_.insert(next, part);
      if (::mmap(at, part.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file().get(),
                 static_cast<off_t>(part.offset)) == MAP_FAILED) {
        private_.erase(noted);
        return false;
      }
      advise(at, part.bytes);
    }
  }
  return populate_private(begin, pages.bytes);
}

bool Arena::hide_from_children(bool hide) {
  if (::madvise(data(), bytes(), hide ? MADV_DONTFORK : MADV_DOFORK) != 0) return false;
  hidden_.store(hide, std::memory_order_relaxed);
  return true;
}

// Pages between the first and the last one hold nothing but the memory that was adopted: they are
// copied when the child writes to them.
void Arena::detach_in_child() {
  const std::size_t page = page_bytes();
  for (const Elsewhere& one : elsewhere_) {
    auto* place = const_cast<std::byte*>(one.place);
    const std::size_t last = one.pages.bytes - page;
    replace_by_copy(place, page);
    if (last == 0) continue;
    replace_by_copy(place + last, page);
    if (last == page) continue;
    ::mmap(place + page, last - page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file().get(),
           static_cast<off_t>(one.pages.offset + page));
  }
  if (hidden_.load(std::memory_order_relaxed)) {
    // What the child allocates must not lie where its parent's memory would.
    ::mmap(data(), bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
           0);
  }
  object_.file = FileDescriptor();
}

Arena::Use::Use(const Arena& arena, std::array<ByteRange, 2> buffers)
    : arena_(&arena), buffers_(buffers) {
  const std::lock_guard lock(arena.places_mutex_);
  arena.in_use_.insert(arena.in_use_.end(), buffers.begin(), buffers.end());
}

void Arena::Use::end() noexcept {
  if (arena_ == nullptr) return;
  const std::lock_guard lock(arena_->places_mutex_);
  for (const ByteRange& buffer : buffers_) {
    const auto shown = std::find(arena_->in_use_.begin(), arena_->in_use_.end(), buffer);
    *shown = arena_->in_use_.back();
    arena_->in_use_.pop_back();
  }
  arena_ = nullptr;
}

}  // namespace rondo::detail
