#include "bootstrap/sockets.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/giving_up.hpp"

namespace rondo::detail {

bool ready_before(const FileDescriptor& fd, short events, Clock::time_point deadline) {
  for (;;) {
    const bool over = is_over(deadline);
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(next_look(deadline) - Clock::now());
    pollfd request{fd.get(), events, 0};
    const auto wait = static_cast<int>(std::clamp<std::int64_t>(left.count() + 1, 0, 1000));
    if (::poll(&request, 1, over ? 0 : wait) > 0) return true;
    if (over) return false;
  }
}

Moved send_all(const FileDescriptor& to, const void* data, std::size_t bytes,
               Clock::time_point deadline) {
  const auto* next = static_cast<const char*>(data);
  while (bytes > 0) {
    if (!ready_before(to, POLLOUT, deadline)) return {Moved::End::late};
    const ssize_t sent = ::send(to.get(), next, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent <= 0) return {Moved::End::lost, std::strerror(errno)};
    next += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return {};
}

Moved receive_all(const FileDescriptor& from, void* data, std::size_t bytes,
                  Clock::time_point deadline) {
  auto* next = static_cast<char*>(data);
  while (bytes > 0) {
    if (!ready_before(from, POLLIN, deadline)) return {Moved::End::late};
    const ssize_t received = ::recv(from.get(), next, bytes, MSG_DONTWAIT);
    if (received < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (received == 0) return {Moved::End::lost, "it ended, or closed its socket"};
    if (received < 0) return {Moved::End::lost, std::strerror(errno)};
    next += received;
    bytes -= static_cast<std::size_t>(received);
  }
  return {};
}

bool has_hung_up(const FileDescriptor& socket) {
  char byte = 0;
  const ssize_t received = ::recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return received == 0 || (received < 0 && errno != EINTR && errno != EAGAIN);
}

bool has_bytes(const FileDescriptor& socket) {
  char byte = 0;
  return ::recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

}  // namespace rondo::detail
