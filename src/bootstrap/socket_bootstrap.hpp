// Processes of one host and user, met at a Unix socket: no MPI, no root. Rank 0 listens, and passes blobs on.
//
// Rank 0 answers whoever comes with a Hello only when all have come, or when it gives up, so that all know why.
// Whoever belongs to another user, says something else or goes away is dropped.
#pragma once

#include <chrono>
#include <exception>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/file_descriptor.hpp"
#include "bootstrap/bootstrap.hpp"

namespace rondo::detail {

class Visitor;

class SocketBootstrap final : public Bootstrap {
 public:
  // Waits for all `size` ranks to come to `path`, which rank 0 makes and removes. Throws UsageError,
  // TimeoutError that names the ranks that have not come, TransportError; on all ranks that have come.
  SocketBootstrap(const std::string& path, int rank, int size, std::chrono::milliseconds timeout);

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  void all_gather(const void* mine, void* all, std::size_t bytes) override;

 private:
  void listen_for_all(const std::string& path);
  void admit_all(const FileDescriptor& listener, const std::string& path);
  void admit(const FileDescriptor& listener, std::vector<Visitor>& visitors,
             const std::string& path);
  void answer_all(const std::exception_ptr& refusal) noexcept;
  void connect_to_first(const std::string& path);
  // Whole blobs, before the deadline; `peer` is named when it is gone or late.
  void send_all(const FileDescriptor& to, const void* data, std::size_t bytes, int peer) const;
  void receive_all(const FileDescriptor& from, void* data, std::size_t bytes, int peer) const;
  [[noreturn]] void throw_missing(const std::string& path) const;

  int rank_;
  int size_;
  std::chrono::milliseconds timeout_;
  Clock::time_point deadline_;
  std::vector<FileDescriptor> sockets_;  // rank 0: by rank; others: that to rank 0
};

}  // namespace rondo::detail
