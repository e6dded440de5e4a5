// Joins processes that meet at a MeetingPoint: no MPI, no root. Rank 0 listens, and passes blobs
// on.
//
// Rank 0 answers only when all ranks have come, or when it gives up, so that every rank gets the
// reason.
#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "base/file_descriptor.hpp"
#include "bootstrap/bootstrap.hpp"
#include "bootstrap/meeting_point.hpp"
#include "bootstrap/sockets.hpp"

namespace rondo::detail {

class SocketBootstrap final : public Bootstrap {
 public:
  // Waits for all `size` ranks to come to `place`. Throws UsageError, TimeoutError that names the
  // ranks that have not come, TransportError; on all ranks that have come.
  SocketBootstrap(const MeetingPoint& place, int rank, int size, std::chrono::milliseconds timeout);

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  void all_gather(const void* mine, void* all, std::size_t bytes) override;
  // Returns the network interfaces of this host by which this rank has met ranks of other hosts,
  // with commas between them.
  [[nodiscard]] std::string interfaces() const;
  // Gives up the connections, when nothing more is to be exchanged. Rank 0 returns one for each
  // rank; another rank returns the one to rank 0.
  std::vector<FileDescriptor> release() { return std::exchange(sockets_, {}); }

 private:
  void connect_to_first(const MeetingPoint& place);
  void fail_if_another_is_first(const MeetingPoint& place);
  void wait_for_answer();
  // Rank 0's part in all_gather(). If it fails, rank 0 sends the others the reason.
  void gather_and_spread(char* rows, std::size_t bytes);
  void tell_all(const std::exception_ptr& reason) const noexcept;
  // If `peer` is gone or late, these throw an error that names it.
  void send(const FileDescriptor& to, const void* data, std::size_t bytes, int peer) const;
  void receive(const FileDescriptor& from, void* data, std::size_t bytes, int peer) const;
  void require(const Moved& moved, const char* waited, int peer) const;

  int rank_;
  int size_;
  std::chrono::milliseconds timeout_;
  Clock::time_point deadline_;
  std::vector<FileDescriptor> sockets_;  // rank 0: by rank; others: that to rank 0
};

}  // namespace rondo::detail
