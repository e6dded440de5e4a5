#include "memory/peer_arena.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <map>
#include <mutex>
#include <utility>

#include <rondo/errors.hpp>

namespace rondo::detail {
namespace {

struct MappedArenas {
  std::mutex mutex;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::weak_ptr<const Mapping>> by_name;
};

MappedArenas& mapped_arenas() {
  static auto* all = new MappedArenas;  // never destroyed: communicators may be longer than it
  return *all;
}

std::pair<std::uint64_t, std::uint64_t> key_of(const ArenaName& name) {
  return {name.device, name.inode};
}

}  // namespace

ArenaName name_of(const FileDescriptor& file) {
  struct stat facts{};
  if (::fstat(file.get(), &facts) != 0) return {};
  return {facts.st_dev, facts.st_ino, static_cast<std::uint64_t>(facts.st_size)};
}

ArenaName name_of(const Arena& arena) { return name_of(arena.file()); }

void lock_mapped_arenas() { mapped_arenas().mutex.lock(); }
void unlock_mapped_arenas() { mapped_arenas().mutex.unlock(); }

PeerArena mapped_arena(const ArenaName& name) {
  MappedArenas& all = mapped_arenas();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_name.find(key_of(name));
  return found == all.by_name.end() ? nullptr : found->second.lock();
}

PeerArena map_arena(const FileDescriptor& file, const ArenaName& name) {
  if (!(name_of(file) == name)) {
    throw TransportError("was given another file than the memory of that rank");
  }
  MappedArenas& all = mapped_arenas();
  const std::lock_guard lock(all.mutex);  // two ranks of this process may come at once
  if (PeerArena known = all.by_name[key_of(name)].lock()) return known;
  auto mapping = std::make_shared<const Mapping>(map_shared(file, name.bytes));
  // A core dump would read all pages, and so reserve those of the whole file.
  ::madvise(mapping->data(), mapping->bytes(), MADV_DONTDUMP);
  std::erase_if(all.by_name, [](const auto& one) { return one.second.expired(); });
  all.by_name[key_of(name)] = mapping;
  return mapping;
}

}  // namespace rondo::detail
