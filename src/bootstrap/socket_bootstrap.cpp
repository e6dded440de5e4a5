#include "bootstrap/socket_bootstrap.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include <rondo/errors.hpp>

namespace rondo::detail {
namespace {

constexpr std::uint64_t kMagic = 0x31306F646E6F7271U;

struct Hello {
  std::uint64_t magic = kMagic;
  std::int32_t rank = 0;
  std::int32_t size = 0;
};

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    throw UsageError(fmt::format("from_socket: the path '{}' must have 1 to {} bytes", path,
                                 sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

FileDescriptor make_socket() {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) {
    throw TransportError(fmt::format("cannot make a Unix socket: {}", std::strerror(errno)));
  }
  return socket;
}

// Removes the name of a socket.
class SocketName {
 public:
  explicit SocketName(std::string path) : path_(std::move(path)) {}
  SocketName(const SocketName&) = delete;
  SocketName& operator=(const SocketName&) = delete;
  ~SocketName() { ::unlink(path_.c_str()); }

 private:
  std::string path_;
};

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

SocketBootstrap::SocketBootstrap(const std::string& path, int rank, int size,
                                 std::chrono::milliseconds timeout)
    : rank_(rank), size_(size), timeout_(timeout), deadline_(Clock::now() + timeout) {
  if (size < 1 || rank < 0 || rank >= size) {
    throw UsageError(
        fmt::format("from_socket: rank {} of {}: ranks are 0 to size - 1", rank, size));
  }
  if (rank == 0) {
    listen_for_all(path);
  } else {
    connect_to_first(path);
  }
}

void SocketBootstrap::listen_for_all(const std::string& path) {
  const sockaddr_un address = address_of(path);
  const FileDescriptor listener = make_socket();
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const char* cure =
        errno == EADDRINUSE ? "; is it left from an earlier run, or used by another?" : "";
    throw TransportError(
        fmt::format("cannot make the socket {}: {}{}", path, std::strerror(errno), cure));
  }
  const SocketName name(path);
  if (::listen(listener.get(), size_) != 0) {
    throw TransportError(fmt::format("cannot listen at {}: {}", path, std::strerror(errno)));
  }
  sockets_.resize(static_cast<std::size_t>(size_));
  for (int known = 1; known < size_; ++known) {
    FileDescriptor socket = accept_one(listener.get(), path);
    Hello hello;
    receive_all(socket.get(), &hello, sizeof(hello), -1);
    const bool fits = hello.magic == kMagic && hello.rank > 0 && hello.rank < size_;
    if (!fits || hello.size != size_ || sockets_[static_cast<std::size_t>(hello.rank)].get() >= 0) {
      throw UsageError(
          fmt::format("from_socket: somebody came to {} as rank {} of {}, but rank 0 was told of "
                      "{} ranks, each "
                      "of which comes once",
                      path, hello.rank, hello.size, size_));
    }
    sockets_[static_cast<std::size_t>(hello.rank)] = std::move(socket);
  }
}

FileDescriptor SocketBootstrap::accept_one(int listener, const std::string& path) {
  if (!ready(listener, POLLIN)) throw_missing(path);
  FileDescriptor socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (socket.get() < 0) {
    throw TransportError(fmt::format("accept at {} failed: {}", path, std::strerror(errno)));
  }
  return socket;
}

void SocketBootstrap::throw_missing(const std::string& path) const {
  std::string missing;
  for (int rank = 1; rank < size_; ++rank) {
    if (sockets_[static_cast<std::size_t>(rank)].get() >= 0) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  }
  throw TimeoutError(fmt::format("rank 0 waited {} ms at {} for ranks that did not come: {}",
                                 timeout_.count(), path, missing));
}

void SocketBootstrap::connect_to_first(const std::string& path) {
  const sockaddr_un address = address_of(path);
  FileDescriptor socket = make_socket();
  while (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
         0) {
    // Rank 0 may not be there yet.
    const bool early =
        errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN || errno == EINTR;
    if (!early) {
      throw TransportError(fmt::format("cannot connect to {}: {}", path, std::strerror(errno)));
    }
    if (Clock::now() > deadline_) {
      throw TimeoutError(fmt::format("rank {} waited {} ms for rank 0 at {}; was it started?",
                                     rank_, timeout_.count(), path));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  sockets_.push_back(std::move(socket));
  Hello hello;
  hello.rank = rank_;
  hello.size = size_;
  send_all(sockets_[0].get(), &hello, sizeof(hello), 0);
}

bool SocketBootstrap::ready(int fd, short events) const {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now());
    pollfd request{fd, events, 0};
    const auto wait = std::clamp<std::int64_t>(left.count(), 0, 1000);
    if (::poll(&request, 1, static_cast<int>(wait)) > 0) return true;
    if (left.count() <= 0) return false;
  }
}

void SocketBootstrap::send_all(int fd, const void* data, std::size_t bytes, int peer) const {
  const auto* next = static_cast<const char*>(data);
  while (bytes > 0) {
    if (!ready(fd, POLLOUT)) {
      throw TimeoutError(fmt::format("rank {} waited {} ms to send to rank {} while joining", rank_,
                                     timeout_.count(), peer));
    }
    const ssize_t sent = ::send(fd, next, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent <= 0) {
      throw TransportError(fmt::format("rank {} has lost rank {} while joining: {}", rank_, peer,
                                       std::strerror(errno)));
    }
    next += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
}

void SocketBootstrap::receive_all(int fd, void* data, std::size_t bytes, int peer) const {
  auto* next = static_cast<char*>(data);
  while (bytes > 0) {
    if (!ready(fd, POLLIN)) {
      throw TimeoutError(fmt::format("rank {} waited {} ms for rank {} while joining", rank_,
                                     timeout_.count(), peer));
    }
    const ssize_t received = ::recv(fd, next, bytes, MSG_DONTWAIT);
    if (received < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (received <= 0) {
      throw TransportError(
          fmt::format("rank {} has lost rank {} while joining: {}", rank_, peer,
                      received == 0 ? "it ended, or closed its socket" : std::strerror(errno)));
    }
    next += received;
    bytes -= static_cast<std::size_t>(received);
  }
}

void SocketBootstrap::all_gather(const void* mine, void* all, std::size_t bytes) {
  deadline_ = Clock::now() + timeout_;
  auto* rows = static_cast<char*>(all);
  const std::size_t total = bytes * static_cast<std::size_t>(size_);
  if (rank_ != 0) {
    send_all(sockets_[0].get(), mine, bytes, 0);
    receive_all(sockets_[0].get(), all, total, 0);
    return;
  }
  std::memcpy(rows, mine, bytes);
  for (int peer = 1; peer < size_; ++peer) {
    const auto index = static_cast<std::size_t>(peer);
    receive_all(sockets_[index].get(), rows + index * bytes, bytes, peer);
  }
  for (int peer = 1; peer < size_; ++peer) {
    send_all(sockets_[static_cast<std::size_t>(peer)].get(), all, total, peer);
  }
}

}  // namespace rondo::detail
