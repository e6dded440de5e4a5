// Joins processes of one host and user over a Unix socket: no MPI, no root. Rank 0 listens, and passes blobs on.
//
// Rank 0 answers a Hello only when all ranks have connected, or when it gives up, so that every rank gets the reason.
// It drops connections of other users, those that send anything but a Hello, and those that close.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/file_descriptor.hpp"
#include "bootstrap/bootstrap.hpp"

namespace rondo::detail {

class SocketBootstrap final : public Bootstrap {
 public:
  // Waits for all `size` ranks to come to `path`, which rank 0 makes and removes. Throws UsageError,
  // TimeoutError that names the ranks that have not come, TransportError; on all ranks that have come.
  SocketBootstrap(const std::string& path, int rank, int size, std::chrono::milliseconds timeout);

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  void all_gather(const void* mine, void* all, std::size_t bytes) override;

 private:
  void connect_to_first(const std::string& path);
  // Move a whole blob before the deadline; an error names `peer`, which is gone or late.
  void send_all(const FileDescriptor& to, const void* data, std::size_t bytes, int peer) const;
  void receive_all(const FileDescriptor& from, void* data, std::size_t bytes, int peer) const;

  int rank_;
  int size_;
  std::chrono::milliseconds timeout_;
  Clock::time_point deadline_;
  std::vector<FileDescriptor> sockets_;  // rank 0: by rank; others: that to rank 0
};

}  // namespace rondo::detail
