#include "carrier/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include <rondo/errors.hpp>

namespace rondo::detail {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

std::string unpredictable_name() {
  std::array<std::uint64_t, 2> words{};
  if (::getrandom(words.data(), sizeof(words), 0) != static_cast<ssize_t>(sizeof(words))) {
    throw TransportError(
        fmt::format("getrandom failed: {}; does a sandbox forbid it?", std::strerror(errno)));
  }
  return fmt::format("/rondo-{:016x}{:016x}", words[0], words[1]);
}

std::byte* map_or_throw(std::size_t bytes, int flags, int fd, std::string_view what) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (data == MAP_FAILED) {
    throw TransportError(
        fmt::format("cannot map {} bytes of {}: {}; is there memory left, and do limits (ulimit "
                    "-v, cgroup) allow it?",
                    bytes, what, std::strerror(errno)));
  }
  return static_cast<std::byte*>(data);
}

[[noreturn]] void throw_no_room(std::size_t needed, std::uint64_t available) {
  throw TransportError(fmt::format(
      "/dev/shm has {} KiB free, and the ranks of this host need {} KiB. Give the container more "
      "(docker run --shm-size=1g, or --ipc=host), remount (mount -o remount,size=1g /dev/shm), set "
      "smaller CommunicatorOptions::slot_bytes or slots, or choose CarrierChoice::mpi",
      available / 1024, (needed + 1023) / 1024));
}

std::uint64_t room(int fd) {
  struct statvfs facts {};
  if (::fstatvfs(fd, &facts) != 0) return UINT64_MAX;
  // A tmpfs without a limit reports no blocks at all.
  if (facts.f_blocks == 0) return UINT64_MAX;
  return static_cast<std::uint64_t>(facts.f_bavail) * facts.f_frsize;
}

void reserve(int fd, std::size_t bytes) {
  const std::uint64_t available = room(fd);
  if (available < bytes) throw_no_room(bytes, available);
  int error = EINTR;
  while (error == EINTR) error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  if (error == ENOSPC) throw_no_room(bytes, room(fd));
  if (error != 0) {
    throw TransportError(
        fmt::format("cannot reserve {} bytes of shared memory: {}; look at the limits of /dev/shm "
                    "and of the cgroup",
                    bytes, std::strerror(error)));
  }
}

}  // namespace

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

Mapping map_private(std::size_t bytes) {
  return {map_or_throw(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1, "private memory"), bytes};
}

SharedName::~SharedName() {
  if (!text_.empty()) ::shm_unlink(text_.c_str());
}

NamedMapping create_shared(std::size_t bytes) {
  const std::string text = unpredictable_name();
  const FileDescriptor fd(::shm_open(text.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd.get() < 0) {
    throw TransportError(
        fmt::format("cannot create shared memory object {}: {}. Is /dev/shm mounted and writable?",
                    text, std::strerror(errno)));
  }
  SharedName name(text);
  reserve(fd.get(), bytes);
  return {std::move(name), Mapping(map_or_throw(bytes, MAP_SHARED, fd.get(), text), bytes)};
}

Mapping open_shared(const std::string& name, std::size_t bytes) {
  const FileDescriptor fd(::shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0));
  if (fd.get() < 0) {
    throw TransportError(
        fmt::format("cannot open shared memory object {}: {}; ranks in different containers share "
                    "/dev/shm with --ipc=host or a common --ipc",
                    name, std::strerror(errno)));
  }
  return {map_or_throw(bytes, MAP_SHARED, fd.get(), name), bytes};
}

}  // namespace rondo::detail
