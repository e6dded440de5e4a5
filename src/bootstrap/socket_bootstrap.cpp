#include "bootstrap/socket_bootstrap.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "bootstrap/local_socket.hpp"
#include "bootstrap/socket_admission.hpp"

namespace rondo::detail {
namespace {

void throw_refusal(const Answer& answer) {
  if (answer.verdict == Verdict::usage) throw UsageError(answer.reason.data());
  if (answer.verdict == Verdict::timeout) throw TimeoutError(answer.reason.data());
  if (answer.verdict == Verdict::transport) throw TransportError(answer.reason.data());
}

}  // namespace

SocketBootstrap::SocketBootstrap(const std::string& path, int rank, int size,
                                 std::chrono::milliseconds timeout)
    : rank_(rank), size_(size), timeout_(timeout), deadline_(deadline_after(timeout)) {
  if (size < 1 || rank < 0 || rank >= size) {
    throw UsageError(
        fmt::format("from_socket: rank {} of {}: ranks are 0 to size - 1", rank, size));
  }
  if (rank == 0) {
    sockets_ = admit_ranks(path, size, timeout, deadline_);
  } else {
    connect_to_first(path);
  }
}

void SocketBootstrap::connect_to_first(const std::string& path) {
  const sockaddr_un address = address_of(path);
  FileDescriptor socket = make_local_socket();
  while (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
         0) {
    // Rank 0 may not be there yet.
    const bool early =
        errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN || errno == EINTR;
    if (!early) {
      throw TransportError(
          fmt::format("rank {} cannot connect to {}: {}{}", rank_, path, std::strerror(errno),
                      errno == EACCES ? "; does the path belong to another user?" : ""));
    }
    if (Clock::now() > deadline_) {
      throw TimeoutError(fmt::format("rank {} waited {} ms for rank 0 at {}; was it started?",
                                     rank_, timeout_.count(), path));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::string objection = objection_to_peer(socket);
  if (!objection.empty()) {
    throw TransportError(fmt::format(
        "rank {} does not trust who listens at {}: {}. Choose a path in a folder that only you may "
        "write to",
        rank_, path, objection));
  }
  sockets_.push_back(std::move(socket));
  Hello hello;
  hello.rank = rank_;
  hello.size = size_;
  send_all(sockets_[0], &hello, sizeof(hello), 0);
  Answer answer;
  // Wait a second longer than rank 0, whose deadline is running already: its answer names the missing ranks.
  deadline_ = deadline_after(timeout_) + std::chrono::seconds(1);
  receive_all(sockets_[0], &answer, sizeof(answer), 0);
  answer.reason.back() = '\0';
  throw_refusal(answer);
}

void SocketBootstrap::send_all(const FileDescriptor& to, const void* data, std::size_t bytes,
                               int peer) const {
  const auto* next = static_cast<const char*>(data);
  while (bytes > 0) {
    if (!ready_before(to, POLLOUT, deadline_)) {
      throw TimeoutError(fmt::format("rank {} waited {} ms to send to rank {} while joining", rank_,
                                     timeout_.count(), peer));
    }
    const ssize_t sent = ::send(to.get(), next, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent <= 0) {
      throw TransportError(fmt::format("rank {} has lost rank {} while joining: {}", rank_, peer,
                                       std::strerror(errno)));
    }
    next += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
}

void SocketBootstrap::receive_all(const FileDescriptor& from, void* data, std::size_t bytes,
                                  int peer) const {
  auto* next = static_cast<char*>(data);
  while (bytes > 0) {
    if (!ready_before(from, POLLIN, deadline_)) {
      throw TimeoutError(fmt::format("rank {} waited {} ms for rank {} while joining", rank_,
                                     timeout_.count(), peer));
    }
    const ssize_t received = ::recv(from.get(), next, bytes, MSG_DONTWAIT);
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
  deadline_ = deadline_after(timeout_);
  auto* rows = static_cast<char*>(all);
  const std::size_t total = bytes * static_cast<std::size_t>(size_);
  if (rank_ != 0) {
    send_all(sockets_[0], mine, bytes, 0);
    receive_all(sockets_[0], all, total, 0);
    return;
  }
  std::memcpy(rows, mine, bytes);
  for (int peer = 1; peer < size_; ++peer) {
    const auto index = static_cast<std::size_t>(peer);
    receive_all(sockets_[index], rows + index * bytes, bytes, peer);
  }
  for (int peer = 1; peer < size_; ++peer) {
    send_all(sockets_[static_cast<std::size_t>(peer)], all, total, peer);
  }
}

}  // namespace rondo::detail
