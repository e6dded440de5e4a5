#include "memory/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/write_signals.hpp"

namespace rondo::detail {
namespace {

constexpr std::uint64_t kSpareBytes = std::uint64_t{4} << 20U;
constexpr std::size_t kSmallBytes = std::size_t{64} << 10U;

// Returns addresses of this process for so many bytes, from a multiple of the size of a huge page
// on, since only there can a file have huge pages. Nothing is mapped there that can be used. Null
// if there are none.
std::byte* aligned_addresses(std::size_t bytes) {
  constexpr std::size_t kHugePageBytes = std::size_t{2} << 20U;
  bytes = (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
  const std::size_t more = bytes + kHugePageBytes;
  void* found =
      ::mmap(nullptr, more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(found);
  const std::size_t over = reinterpret_cast<std::uintptr_t>(found) % kHugePageBytes;
  const std::size_t before = over == 0 ? 0 : kHugePageBytes - over;
  if (before > 0) ::munmap(begin, before);
  ::munmap(begin + before + bytes, more - before - bytes);
  return begin + before;
}

std::byte* map_or_throw(std::size_t bytes, int flags, int fd, std::string_view what) {
  std::byte* place = fd < 0 ? nullptr : aligned_addresses(bytes);
  if (place != nullptr) flags |= MAP_FIXED;
  void* data = ::mmap(place, bytes, PROT_NONE, flags, fd, 0);
  if (data == MAP_FAILED && place != nullptr) ::munmap(place, bytes);
  // After mlockall() the system would reserve all pages of a mapping that can be written.
  if (data != MAP_FAILED &&
      (::munlock(data, bytes) != 0 || ::mprotect(data, bytes, PROT_READ | PROT_WRITE) != 0)) {
    const int error = errno;
    ::munmap(data, bytes);
    errno = error;
    data = MAP_FAILED;
  }
  if (data == MAP_FAILED) {
    throw TransportError(
        fmt::format("cannot map {} bytes of {}: {}; is there memory left, and do limits (ulimit "
                    "-v, cgroup; of the number of mappings: vm.max_map_count) allow it?",
                    bytes, what, std::strerror(errno)));
  }
  return static_cast<std::byte*>(data);
}

// Says why a call could not reserve memory in a file without a name.
std::string reason_of(int error) {
  return error == EFBIG ? "the limit of file sizes (ulimit -f) holds for shared memory, too"
                        : std::strerror(error);
}

[[noreturn]] void throw_no_room(std::size_t bytes, const std::string& why) {
  throw TransportError(fmt::format(
      "cannot reserve {} KiB of memory for the ranks of this host: {}; allow the processes more "
      "(cgroup, docker run --memory), or ask for less: as you allocate, or when ranks "
      "join, by CommunicatorOptions::slot_bytes, slots or CarrierChoice::mpi",
      (bytes + 1023) / 1024, why));
}

void reserve(const FileDescriptor& file, std::size_t offset, std::size_t bytes) {
  int error = EINTR;
  while (error == EINTR) {
    error = ::posix_fallocate(file.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes));
  }
  if (error != 0) throw_no_room(bytes, reason_of(error));
}

}  // namespace

void require_room(std::size_t bytes) {
  for (const MemoryLimit& limit : memory_limits()) require_room_within(limit, bytes);
}

bool has_room(const MemoryLimit& limit, std::size_t bytes) {
  const std::uint64_t spare_bytes = bytes < kSmallBytes ? 0 : kSpareBytes;
  return limit.room_bytes >= spare_bytes && limit.room_bytes - spare_bytes >= bytes;
}

void require_room_within(const MemoryLimit& limit, std::size_t bytes) {
  if (has_room(limit, bytes)) return;
  throw_no_room(bytes, fmt::format("{} KiB are left {}, and Rondo leaves {} KiB free for what "
                                   "processes do beside",
                                   limit.room_bytes / 1024,
                                   limit.id == 0 ? "on this host" : "in the control group",
                                   kSpareBytes / 1024));
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

Mapping map_private(std::size_t bytes) {
  return {map_or_throw(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, "private memory"),
          bytes};
}

SharedObject create_shared(std::size_t bytes, std::size_t reserved_bytes) {
  // Some systems refuse a memfd without this flag; older kernels do not know the flag (EINVAL).
  constexpr unsigned kNotExecutable = 8;  // MFD_NOEXEC_SEAL
  FileDescriptor file(::memfd_create("rondo", MFD_CLOEXEC | MFD_ALLOW_SEALING | kNotExecutable));
  if (!file.valid() && errno == EINVAL) {
    file = FileDescriptor(::memfd_create("rondo", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  }
  if (!file.valid()) {
    throw TransportError(
        fmt::format("cannot make shared memory (memfd_create): {}; {}", std::strerror(errno),
                    errno == EMFILE   ? "allow more open files (ulimit -n)"
                    : errno == ENFILE ? "allow more open files on this host (fs.file-max)"
                                      : "does a sandbox forbid it?"));
  }
  const WriteSignalsHeld held;
  if (reserved_bytes > 0) {
    require_room(reserved_bytes);
    reserve(file, 0, reserved_bytes);
  }
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    throw_no_room(bytes, reason_of(errno));
  }
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    throw TransportError(fmt::format("cannot seal shared memory: {}", std::strerror(errno)));
  }
  Mapping mapping(map_or_throw(bytes, MAP_SHARED, file.get(), "shared memory"), bytes);
  return {std::move(file), std::move(mapping)};
}

bool populate(std::byte* data, std::size_t bytes) {
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers do not have
  return ::madvise(data, bytes, kPopulateWrite) == 0;
}

void touch(const SharedObject& object, std::size_t offset, std::size_t bytes) {
  require_room(bytes);
  std::byte* data = object.mapping.data() + offset;
  ::madvise(data, bytes, MADV_HUGEPAGE);  // the system may decline
  if (populate(data, bytes)) return;
  if (errno != EINVAL) throw_no_room(bytes, std::strerror(errno));
  // Linux before 5.14.
  if (object.file.valid()) {
    reserve(object.file, offset, bytes);
  } else {
    std::memset(data, 0, bytes);
  }
}

void reserve_pages(std::byte* data, std::size_t bytes) {
  if (populate(data, bytes)) return;
  if (errno != EINVAL) throw_no_room(bytes, std::strerror(errno));
  // Linux before 5.14: the first access reserves a page.
  for (std::size_t offset = 0; offset < bytes; offset += page_bytes()) {
    static_cast<void>(*static_cast<volatile std::byte*>(data + offset));
  }
}

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

Mapping map_shared(const FileDescriptor& file, std::size_t bytes) {
  struct stat facts{};
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  const bool sealed = seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
  if (!sealed || ::fstat(file.get(), &facts) != 0 || facts.st_uid != ::geteuid() ||
      static_cast<std::size_t>(facts.st_size) != bytes) {
    throw TransportError(fmt::format(
        "was given a file that is not this host's shared memory: {} of {} bytes of user {}, where "
        "{} bytes were agreed on. Are all ranks built from one version of Rondo?",
        sealed ? "sealed" : "unsealed", facts.st_size, facts.st_uid, bytes));
  }
  return {map_or_throw(bytes, MAP_SHARED, file.get(), "shared memory"), bytes};
}

}  // namespace rondo::detail
