// Moves bytes through sockets until a deadline.
#pragma once

#include <cstddef>
#include <string>

#include "base/deadline.hpp"
#include "base/file_descriptor.hpp"

namespace rondo::detail {

// Whether `fd` is ready for `events` (as poll has them) before the deadline.
bool ready_before(const FileDescriptor& fd, short events, Clock::time_point deadline);

// Says how moving bytes ended: all were moved, the deadline came first, or the other side is gone
// and `why` says how.
struct Moved {
  enum class End { done, late, lost };
  End end = End::done;
  std::string why = {};
};
Moved send_all(const FileDescriptor& to, const void* data, std::size_t bytes,
               Clock::time_point deadline);
Moved receive_all(const FileDescriptor& from, void* data, std::size_t bytes,
                  Clock::time_point deadline);

// Whether the other side has closed the connection, or is lost. Takes no byte from the socket.
bool has_hung_up(const FileDescriptor& socket);
// Whether bytes have come that nobody has read.
bool has_bytes(const FileDescriptor& socket);

}  // namespace rondo::detail
