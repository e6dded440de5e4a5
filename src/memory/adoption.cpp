#include "memory/adoption.hpp"

#include <pthread.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include <rondo/adopt.hpp>
#include <rondo/errors.hpp>

#include "base/log.hpp"
#include "memory/peer_arena.hpp"
#include "memory/process_arena.hpp"

namespace rondo {
namespace detail {
namespace {

// A line of /proc/self/maps.
struct MappedRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::string access;  // as "rw-p"
  std::string name;    // empty for memory without a file, except for some that the system names
  std::uint64_t inode = 0;
};

bool read_range(std::istream& maps, MappedRange& range) {
  std::string line;
  if (!std::getline(maps, line)) return false;
  std::istringstream words(line);
  char dash = 0;
  std::string offset;
  std::string device;
  range.name.clear();
  words >> std::hex >> range.begin >> dash >> range.end >> range.access >> offset >> device >>
      std::dec >> range.inode >> range.name;
  return true;
}

// Says why the range does not consist of ordinary memory; empty if it does.
std::string objection_to_range(std::uintptr_t begin, std::uintptr_t end) {
  std::ifstream maps("/proc/self/maps");
  MappedRange range;
  std::uintptr_t at = begin;
  while (at < end && read_range(maps, range)) {
    if (range.end <= at) continue;
    if (range.begin > at) break;
    const bool heap =
        range.name.empty() || range.name == "[heap]" || range.name.rfind("[anon:", 0) == 0;
    if (range.access.rfind("rw", 0) != 0) return "it cannot be written";
    if (range.access[2] == 'x') return "it can be executed";
    if (range.access.back() != 'p' || range.inode != 0) return "it is shared, or of a file";
    if (!heap) return fmt::format("it is of {}", range.name);
    at = range.end;
  }
  if (at >= end) return {};
  return maps.is_open() ? "not all of it exists" : "/proc/self/maps cannot be read";
}

// The system does not tell stacks of threads from other memory.
bool is_on_this_stack(std::uintptr_t begin, std::uintptr_t end) {
  pthread_attr_t attributes;
  void* lowest = nullptr;
  std::size_t bytes = 0;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return false;
  ::pthread_attr_getstack(&attributes, &lowest, &bytes);
  ::pthread_attr_destroy(&attributes);
  const auto stack = reinterpret_cast<std::uintptr_t>(lowest);
  return begin < stack + bytes && stack < end;
}

// Whether these addresses are still those of the arena, and not of something that the program has
// mapped there since.
bool is_of_arena(std::uintptr_t begin, std::uintptr_t end, const Arena& arena) {
  const ArenaName name = name_of(arena);
  std::ifstream maps("/proc/self/maps");
  MappedRange range;
  while (begin < end && read_range(maps, range)) {
    if (range.end <= begin) continue;
    if (range.begin > begin || range.inode != name.inode) break;
    begin = range.end;
  }
  return begin >= end;
}

}  // namespace

Adoption::Adoption(Arena& arena, std::byte* begin, std::size_t bytes)
    : arena_(arena), begin_(begin), bytes_(bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  std::string objection = objection_to_range(address, address + bytes);
  if (is_on_this_stack(address, address + bytes)) objection = "it is of the stack of this thread";
  if (!objection.empty()) {
    throw UsageError(fmt::format("adopt: a page of this memory cannot be adopted: {}", objection));
  }
  pages_ = arena.allocate(bytes, page_bytes());
  if (!arena.take_over(begin, pages_, bytes)) {
    const int error = errno;
    arena.free(pages_);
    throw TransportError(
        fmt::format("adopt: cannot map {} KiB of the arena at the place of this memory: {}",
                    bytes / 1024, std::strerror(error)));
  }
}

Adoption::~Adoption() {
  // A forked child has a copy of the owner, but it is the parent's memory.
  if (!owner_process_.is_this()) return;
  arena_.forget(begin_);
  const auto address = reinterpret_cast<std::uintptr_t>(begin_);
  if (!is_of_arena(address, address + bytes_, arena_)) {
    log(LogLevel::warning,
        "memory was freed before its AdoptedMemory was destroyed: its pages stay allocated");
    return;
  }
  if (!Arena::give_back(begin_, bytes_)) {
    log(LogLevel::warning,
        "there is too little memory to move {} KiB of adopted memory back: its pages stay shared",
        bytes_ / 1024);
    return;
  }
  arena_.free(pages_);
}

}  // namespace detail

AdoptedMemory::AdoptedMemory() noexcept = default;
AdoptedMemory::AdoptedMemory(AdoptedMemory&& other) noexcept = default;
AdoptedMemory& AdoptedMemory::operator=(AdoptedMemory&& other) noexcept = default;
AdoptedMemory::~AdoptedMemory() = default;

AdoptedMemory adopt(void* memory, std::size_t bytes) {
  AdoptedMemory adopted;
  detail::Arena* arena = detail::process_arena();
  if (arena == nullptr || bytes == 0 || arena->holds(memory)) return adopted;
  const std::size_t page = detail::page_bytes();
  const std::size_t before = reinterpret_cast<std::uintptr_t>(memory) % page;
  if (memory == nullptr || bytes > std::numeric_limits<std::size_t>::max() / 2) {
    throw UsageError(fmt::format("adopt: {} bytes at {} are no memory", bytes, memory));
  }
  adopted.adoption_ = std::make_unique<detail::Adoption>(
      *arena, static_cast<std::byte*>(memory) - before, (before + bytes + page - 1) / page * page);
  return adopted;
}

}  // namespace rondo
