// A socket that this process keeps for long, while the program may do with descriptors what it
// wants.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <utility>

#include "base/file_descriptor.hpp"

namespace rondo::detail {

// The program may close descriptors that are not its own, all of them above 2, say, and have opened
// something else that has the socket's number now. What is there then is not used, and not closed.
class KeptSocket {
 public:
  KeptSocket() = default;
  explicit KeptSocket(FileDescriptor socket)
      : socket_(std::move(socket)), inode_(inode_at(socket_.get())) {}
  KeptSocket(KeptSocket&& other) noexcept { *this = std::move(other); }
  KeptSocket& operator=(KeptSocket&& other) noexcept {
    std::swap(socket_, other.socket_);
    std::swap(inode_, other.inode_);
    return *this;
  }
  KeptSocket(const KeptSocket&) = delete;
  KeptSocket& operator=(const KeptSocket&) = delete;
  ~KeptSocket() {
    if (!valid()) static_cast<void>(socket_.release());
  }

  // Whether there is a socket, and it is still the same.
  [[nodiscard]] bool valid() const { return inode_ != 0 && inode_at(socket_.get()) == inode_; }
  [[nodiscard]] const FileDescriptor& get() const { return socket_; }

 private:
  // Zero where there is no socket.
  static std::uint64_t inode_at(int descriptor) {
    struct stat facts{};
    return ::fstat(descriptor, &facts) == 0 && S_ISSOCK(facts.st_mode) ? facts.st_ino : 0;
  }

  FileDescriptor socket_;
  std::uint64_t inode_ = 0;
};

}  // namespace rondo::detail
