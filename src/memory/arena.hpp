// The memory of a process that the other processes of its host can map: one sparse file without a
// name, of a fixed size, and the allocator of its pages. What it knows of its pages is in ordinary
// memory, so that a forked child, which shares the pages, changes nothing for its parent.
//
// Pages are reserved when they are handed out, so that too little memory is an error there and
// never a SIGBUS later. Freed pages go back to the system, except for a few that are kept for the
// next allocation.
//
// A rank names a place in its arena by its offset. Whoever has mapped the arena finds the place at
// that offset in its own mapping.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "memory/free_ranges.hpp"
#include "memory/shared_memory.hpp"

namespace rondo::detail {

// Any thread may call. It is not destroyed before its process ends: ranks may still read it.
class Arena {
 public:
  // Makes an arena of `bytes` bytes, at least 16 MiB, or of less if the system does not give that
  // many addresses. Throws TransportError.
  explicit Arena(std::size_t bytes);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Whole pages, at least one. Throws TransportError if there is too little memory, or the arena is
  // full.
  [[nodiscard]] std::byte* allocate(std::size_t bytes, std::size_t alignment);
  // `data`: what allocate() has returned.
  void free(std::byte* data);
  [[nodiscard]] std::size_t usable_bytes(std::byte* data) const;

  [[nodiscard]] bool holds(const void* data) const { return offset_in(data) < bytes(); }
  // The offset of memory that whoever has mapped this arena reaches, all of it; nothing of other
  // memory.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(const void* data, std::size_t length) const;

  // Has pages of the arena, which allocate() has returned, take the place of those at `place`, with
  // their contents. They are then in both places of this process, and offset_of() and
  // make_private() know both. False, with errno, if the system does not do it.
  bool take_over(std::byte* place, std::byte* pages, std::size_t bytes);
  // From now on, offset_of() does not know that place.
  void forget(const std::byte* place);
  // After forget(): has private pages take that place again, with its contents. False if there is
  // too little memory for that: then the pages of the arena are still there.
  static bool give_back(std::byte* place, std::size_t bytes);
  [[nodiscard]] bool has_taken_over_any() const;

  // For a rank whose call has failed while another may still write: makes all pages that hold these
  // bytes private, with the same contents, at the same addresses. What other processes write there
  // later is not seen here, nor the reverse, and no write of this process is lost; these pages of
  // the file are not handed out again, and stay reserved. Returns false if there is too little
  // memory for that, or if a call in progress has shown some of these pages (Use).
  bool make_private(const std::byte* data, std::size_t length);

  // The buffers of a call in progress, which others may read and write: no page of them becomes
  // private meanwhile, so that what the others write there arrives.
  class Use {
   public:
    Use() = default;
    Use(const Arena& arena, std::array<ByteRange, 2> buffers);
    Use(Use&& other) noexcept
        : arena_(std::exchange(other.arena_, nullptr)), buffers_(other.buffers_) {}
    Use& operator=(Use&& other) noexcept {
      std::swap(arena_, other.arena_);
      std::swap(buffers_, other.buffers_);
      return *this;
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() { end(); }

    // Others reach the buffers no more, or must not.
    void end() noexcept;

   private:
    const Arena* arena_ = nullptr;
    std::array<ByteRange, 2> buffers_;  // by offset
  };

  // From now on, forked children get none of the pages, or get them again. False, with errno, if
  // the system does not do it.
  bool hide_from_children(bool hide);
  // A forked child calls this, alone, for its parent's arena. It makes the child's what lies at the
  // places that were taken over, since other objects share the first and the last page there;
  // keeps the addresses of pages that were hidden; and closes the file.
  void detach_in_child();

  // A thread that forks has them all, so that no other is in the middle of an allocation.
  void lock() {
    mutex_.lock();
    places_mutex_.lock();
  }
  void unlock() {
    places_mutex_.unlock();
    mutex_.unlock();
  }

  [[nodiscard]] const FileDescriptor& file() const { return object_.file; }
  [[nodiscard]] std::byte* data() const { return object_.mapping.data(); }
  [[nodiscard]] std::size_t bytes() const { return object_.mapping.bytes(); }

 private:
  [[nodiscard]] std::uintptr_t origin() const { return reinterpret_cast<std::uintptr_t>(data()); }
  [[nodiscard]] std::size_t offset_in(const void* data) const {
    return reinterpret_cast<std::uintptr_t>(data) - origin();
  }
  // Takes a range that begins as asked for and has `bytes` bytes or more: of pages that are
  // reserved, or of pages that are not. Nothing if there is none.
  std::optional<ByteRange> take_kept(std::size_t bytes, std::size_t alignment);
  std::optional<ByteRange> take_unused(std::size_t bytes, std::size_t alignment);
  // Reserves the pages of a range that was taken. Throws, and has given it back.
  void reserve(ByteRange range);
  [[noreturn]] void throw_full(std::size_t bytes) const;
  // Takes a range of either kind; waits for pages that other threads are returning to the system.
  std::optional<ByteRange> take_any(std::size_t bytes, std::size_t alignment, bool& reserved);
  // Keeps at most that many bytes of pages that are free and reserved.
  void return_to_system(std::size_t most_kept_bytes);
  // The parts of the range that are private, or those that are not. Under places_mutex_.
  [[nodiscard]] std::vector<ByteRange> parts_of(ByteRange range, bool are_private) const;
  // As after the arena was made: for a mapping of its pages that has replaced another.
  void advise(std::byte* data, std::size_t bytes) const;

  // Pages of the arena that are mapped at another place, too.
  struct Elsewhere {
    const std::byte* place = nullptr;
    ByteRange pages;
  };
  // The offset of an address that is elsewhere; nothing if not all bytes are.
  [[nodiscard]] std::optional<std::size_t> offset_elsewhere(const void* data,
                                                            std::size_t length) const;

  SharedObject object_;
  std::atomic<bool> hidden_ = false;  // from children; whoever hides stores it, nothing is ordered

  mutable std::mutex mutex_;
  FreeRanges unused_{origin()};                             // their pages are the system's
  FreeRanges kept_{origin()};                               // reserved
  std::unordered_map<std::size_t, std::size_t> allocated_;  // by offset: bytes, in whole pages
  std::size_t allocated_bytes_ = 0;                         // their sum
  std::condition_variable returned_;
  int returning_ = 0;  // threads that have ranges which they return to the system

  mutable std::mutex places_mutex_;
  // These are under places_mutex_.
  mutable std::vector<ByteRange> in_use_;  // by calls in progress
  std::vector<ByteRange> private_;         // in the order of their places; none overlaps another
  std::list<Elsewhere> elsewhere_;
  // Released when there is a first one; offset_of() acquires them, and looks only then.
  std::atomic<bool> any_private_ = false;
  std::atomic<bool> any_elsewhere_ = false;
};

}  // namespace rondo::detail
