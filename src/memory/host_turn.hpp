// Lets one thread of this user and host at a time look how much memory is left, and reserve its
// own: others would each find room for their piece where there is none for all of them.
#pragma once

#include <chrono>

#include "base/file_descriptor.hpp"

namespace rondo::detail {

// A socket's name in Linux's abstract namespace, which one socket can have at a time. The system
// takes the name away when its process ends, however it ends. Another user can keep the name, too:
// then nobody of this user has the turn, and each waits for it as long as it has patience.
class HostTurn {
 public:
  // Waits for the turn until others have kept it for as long as `patience`; the caller then goes on
  // without.
  explicit HostTurn(std::chrono::nanoseconds patience);
  HostTurn(const HostTurn&) = delete;
  HostTurn& operator=(const HostTurn&) = delete;
  ~HostTurn();
  [[nodiscard]] bool has_it() const { return socket_.valid(); }
  // A forked child calls this: it has a copy of the socket that another thread of its parent has.
  static void leave_to_parent();

 private:
  FileDescriptor socket_;
};

}  // namespace rondo::detail
