#include "memory/process_arena.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/environment.hpp"
#include "base/keep_loaded.hpp"
#include "base/log.hpp"
#include "memory/host_turn.hpp"
#include "memory/peer_arena.hpp"

namespace rondo::detail {
namespace {

// Every process of a host maps the arenas of all others: so all together must fit into the
// addresses of a process, of which some processors give programs 2^47.
constexpr std::size_t kMostBytesOfAll = std::size_t{1} << 46U;

std::size_t default_arena_bytes() {
  const auto memory = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * page_bytes();
  const std::size_t processes = std::max(1U, std::thread::hardware_concurrency());
  // More than there is memory, since what is freed leaves gaps.
  std::size_t bytes = std::min(4 * memory, kMostBytesOfAll / processes);
  // A file cannot be larger than this limit.
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0) bytes = std::min<std::size_t>(bytes, limit.rlim_cur);
  // Where addresses are limited, most of them stay for the program.
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    bytes = std::min<std::size_t>(bytes, limit.rlim_cur / (4 * (processes + 1)));
  }
  return bytes;
}

// All arenas that this process has addresses of: its own, and before them those of the processes
// that it was forked from. Never destroyed, since threads may free memory when the process ends.
struct Arenas {
  std::mutex mutex;
  std::atomic<Arena*> own = nullptr;  // released when it is made
  std::atomic<bool> refused = false;  // by the system, for good
  bool told = false;                  // that the system gives none
  std::vector<Arena*> inherited;
  // While a thread forks, and memory is adopted: the child closes its copy of the second end when
  // it has its own copies of pages, for which its parent waits.
  std::array<FileDescriptor, 2> child_is_ready;
};

Arenas& arenas() {
  static auto* all = new Arenas;
  return *all;
}

// No other thread is in the middle of an allocation when the process is copied.
void before_fork() {
  Arenas& all = arenas();
  all.mutex.lock();
  Arena* own = all.own.load(std::memory_order_relaxed);
  std::array<int, 2> pipe{};
  if (own != nullptr && own->has_taken_over_any() && ::pipe2(pipe.data(), O_CLOEXEC) == 0) {
    all.child_is_ready = {FileDescriptor(pipe[0]), FileDescriptor(pipe[1])};
  }
  if (own != nullptr) own->lock();
  for (Arena* one : all.inherited) one->lock();
  lock_mapped_arenas();
}
void after_fork() {
  Arenas& all = arenas();
  unlock_mapped_arenas();
  if (Arena* own = all.own.load(std::memory_order_relaxed)) own->unlock();
  for (Arena* one : all.inherited) one->unlock();
  all.mutex.unlock();
}

void in_forking_parent() {
  Arenas& all = arenas();
  all.child_is_ready[1] = FileDescriptor();
  if (all.child_is_ready[0].valid()) {
    // A child that is stopped before it is ready must not hold up its parent for ever.
    constexpr int kPatienceMs = 1000;
    pollfd ready{all.child_is_ready[0].get(), POLLIN, 0};
    while (::poll(&ready, 1, kPatienceMs) < 0 && errno == EINTR) {
    }
    all.child_is_ready[0] = FileDescriptor();
  }
  after_fork();
}

// A child must not hand out pages that its parent hands out, too.
void in_forked_child() {
  Arenas& all = arenas();
  if (Arena* own = all.own.load(std::memory_order_relaxed)) {
    own->detach_in_child();
    all.inherited.push_back(own);
  }
  all.own.store(nullptr, std::memory_order_relaxed);
  HostTurn::leave_to_parent();
  for (FileDescriptor& end : all.child_is_ready) end = FileDescriptor();
  after_fork();  // which unlocks the arenas that are inherited now
}

// What the log is to say once of an arena that could not be made; empty if it has said so.
std::string note_refusal(Arenas& all, const TransportError& error) {
  // A process that has no descriptor left may have some later.
  const bool has_descriptors = FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)).valid();
  all.refused.store(has_descriptors, std::memory_order_relaxed);
  if (std::exchange(all.told, true)) return {};
  return fmt::format("memory of rondo::reachable_memory() is ordinary memory in this process: {}",
                     error.what());
}

Arena* make_arena() {
  Arenas& all = arenas();
  std::unique_lock lock(all.mutex);
  if (Arena* own = all.own.load(std::memory_order_acquire)) return own;
  if (all.refused.load(std::memory_order_relaxed)) return nullptr;
  static const int handlers =
      (keep_loaded(), ::pthread_atfork(before_fork, in_forking_parent, in_forked_child));
  static_cast<void>(handlers);
  try {
    auto* own = new Arena(environment_arena_bytes().value_or(default_arena_bytes()));
    all.own.store(own, std::memory_order_release);
    return own;
  } catch (const TransportError& error) {
    const std::string warning = note_refusal(all, error);
    lock.unlock();
    if (!warning.empty()) log(LogLevel::warning, "{}", warning);
    return nullptr;
  }
}

// The arena of a process that this one was forked from.
Arena* inherited_arena_with(const void* data) {
  const std::vector<Arena*>& all = arenas().inherited;
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Arena* one) { return one->holds(data); });
  return found == all.end() ? nullptr : *found;
}

Arena* arena_with(const void* data) {
  Arena* own = arenas().own.load(std::memory_order_acquire);
  return own != nullptr && own->holds(data) ? own : nullptr;
}

}  // namespace

Arena* process_arena() {
  const Arenas& all = arenas();
  if (Arena* own = all.own.load(std::memory_order_acquire)) return own;
  return all.refused.load(std::memory_order_relaxed) ? nullptr : make_arena();
}

void* allocate_reachable(std::size_t bytes, std::size_t alignment) {
  if (bytes >= kLeastReachableBytes || alignment >= page_bytes()) {
    if (Arena* arena = process_arena()) return arena->allocate(bytes, alignment);
  }
  bytes = std::max<std::size_t>(bytes, 1);
  void* data = nullptr;
  if (alignment <= alignof(std::max_align_t)) {
    data = std::malloc(bytes);  // which takes less time
  } else if (::posix_memalign(&data, alignment, bytes) != 0) {
    data = nullptr;
  }
  if (data == nullptr) {
    throw TransportError(fmt::format("cannot allocate {} bytes", bytes));
  }
  return data;
}

void free_reachable(void* data) noexcept {
  if (data == nullptr) return;
  if (Arena* arena = arena_with(data)) {
    try {
      arena->free(static_cast<std::byte*>(data));
    } catch (const std::bad_alloc&) {
      // There is no memory for the books: the pages stay allocated.
    }
  } else if (inherited_arena_with(data) == nullptr) {
    std::free(data);
  }
}

std::size_t usable_bytes_of(void* data) {
  Arena* arena = arena_with(data);
  if (arena == nullptr) arena = inherited_arena_with(data);
  if (arena != nullptr) return arena->usable_bytes(static_cast<std::byte*>(data));
  return ::malloc_usable_size(data);
}

void hide_arena_from_children(bool hide) {
  Arena* arena = process_arena();
  if (arena == nullptr || arena->hide_from_children(hide)) return;
  throw TransportError(fmt::format("cannot hide reachable memory from children (madvise): {}",
                                   std::strerror(errno)));
}

}  // namespace rondo::detail
