#include "carrier/host_watch.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace rondo::detail {
namespace {

// Asks after two seconds of silence, and gives up when three questions, two seconds apart, have no answer.
void keep_alive(const FileDescriptor& socket) {
  const auto set = [&](int level, int name, int value) {
    static_cast<void>(::setsockopt(socket.get(), level, name, &value, sizeof(value)));
  };
  set(IPPROTO_TCP, TCP_KEEPIDLE, 2);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
}

// Why the connection is gone. A connection that the other process has closed, or that its system has reset, is no sign of a
// host that vanished.
bool means_vanished(const FileDescriptor& socket) {
  int error = 0;
  socklen_t bytes = sizeof(error);
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
  return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH || error == EHOSTDOWN;
}

}  // namespace

void HostWatch::watch(std::vector<FileDescriptor> sockets) {
  const std::lock_guard lock(mutex_);
  sockets_ = std::move(sockets);
  for (const FileDescriptor& socket : sockets_) {
    if (socket.valid()) keep_alive(socket);
  }
}

std::vector<int> HostWatch::vanished() {
  const std::lock_guard lock(mutex_);
  std::vector<pollfd> requests;
  for (const FileDescriptor& socket : sockets_) {
    requests.push_back({socket.get(), 0, 0});  // poll() ignores negative descriptors
  }
  if (::poll(requests.data(), requests.size(), 0) > 0) {
    for (std::size_t member = 0; member < requests.size(); ++member) {
      if ((requests[member].revents & (POLLERR | POLLHUP)) == 0) continue;
      if (means_vanished(sockets_[member])) vanished_.push_back(static_cast<int>(member));
      sockets_[member] = FileDescriptor();
    }
  }
  return vanished_;
}

}  // namespace rondo::detail
