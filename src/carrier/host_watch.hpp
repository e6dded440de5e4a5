// Tells whether another host has vanished: its power or its network is gone, so that nothing tells so but silence.
//
// The sockets by which ranks have joined stay open for this. Linux asks at the other end of each, every two seconds, whether it
// is still there (TCP keep-alive); a process that computes need not answer, its system does. Rank 0 watches all others so, and
// each of them watches rank 0.
#pragma once

#include <chrono>
#include <mutex>
#include <vector>

#include "base/file_descriptor.hpp"

namespace rondo::detail {

class HostWatch {
 public:
  // How long a host that has vanished stays unnoticed, at most.
  static constexpr std::chrono::seconds kPatience{8};

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
