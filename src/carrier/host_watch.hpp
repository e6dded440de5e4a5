// Finds out whether another host has vanished: its power or its network has failed, and so it sends nothing, not even
// the end of a connection.
//
// The sockets by which ranks have joined stay open for this. After two seconds without data, TCP's keep-alive asks the
// system at the other end whether it still has the connection, and gives up after six more without an answer; the process
// there need not do anything. Rank 0 has a connection to each other rank, and each of them has one to rank 0.
#pragma once

#include <mutex>
#include <vector>

#include "base/file_descriptor.hpp"

namespace rondo::detail {

class HostWatch {
 public:
  // `sockets`: by member, without a socket where none is watched. Before any other member function.
  void watch(std::vector<FileDescriptor> sockets);

  // The members whose hosts have vanished. Any thread may call.
  [[nodiscard]] std::vector<int> vanished();

 private:
  std::mutex mutex_;
  std::vector<FileDescriptor> sockets_;  // closed once the other end is known to be gone
  std::vector<int> vanished_;
};

}  // namespace rondo::detail
