// Processes of one host, met at a Unix socket: no MPI, no root. Rank 0 listens, and passes blobs on.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/bootstrap.hpp"

namespace rondo::detail {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor();

  [[nodiscard]] int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

class SocketBootstrap final : public Bootstrap {
 public:
  // Waits for all `size` ranks to come to `path`, which rank 0 makes and removes. Throws UsageError,
  // TimeoutError that names the ranks that have not come, TransportError.
  SocketBootstrap(const std::string& path, int rank, int size, std::chrono::milliseconds timeout);

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  void all_gather(const void* mine, void* all, std::size_t bytes) override;

 private:
  using Clock = std::chrono::steady_clock;

  void listen_for_all(const std::string& path);
  void connect_to_first(const std::string& path);
  [[nodiscard]] FileDescriptor accept_one(int listener, const std::string& path);
  // Whole blobs, before the deadline; `peer` is named when it is gone or late.
  void send_all(int fd, const void* data, std::size_t bytes, int peer) const;
  void receive_all(int fd, void* data, std::size_t bytes, int peer) const;
  // Whether `fd` is ready for `events` before the deadline.
  [[nodiscard]] bool ready(int fd, short events) const;
  [[noreturn]] void throw_missing(const std::string& path) const;

  int rank_;
  int size_;
  std::chrono::milliseconds timeout_;
  Clock::time_point deadline_;
  std::vector<FileDescriptor> sockets_;  // rank 0: by rank; others: that to rank 0
};

}  // namespace rondo::detail
