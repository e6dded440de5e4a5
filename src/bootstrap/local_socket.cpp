#include "bootstrap/local_socket.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/giving_up.hpp"
#include "base/log.hpp"
#include "bootstrap/sockets.hpp"

namespace rondo::detail {
namespace {

// A name in Linux's abstract namespace: it is not in the file system, and vanishes with its socket.
struct AbstractAddress {
  sockaddr_un address{};
  socklen_t bytes = 0;

  explicit AbstractAddress(const std::string& name) {
    address.sun_family = AF_UNIX;
    const std::size_t length = std::min(name.size(), sizeof(address.sun_path) - 1);
    std::memcpy(address.sun_path + 1, name.data(), length);
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

std::string unpredictable_name() {
  std::array<std::uint64_t, 2> words{};
  if (::getrandom(words.data(), sizeof(words), 0) != static_cast<ssize_t>(sizeof(words))) {
    throw TransportError(
        fmt::format("getrandom failed: {}; does a sandbox forbid it?", std::strerror(errno)));
  }
  return fmt::format("rondo-{:016x}{:016x}", words[0], words[1]);
}

// A message of one byte and a file descriptor.
struct FileMessage {
  char byte = 'f';
  iovec content{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};

  FileMessage() {
    header.msg_iov = &content;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
};

}  // namespace

FileDescriptor make_local_socket() {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) {
    throw TransportError(
        fmt::format("cannot make a Unix socket: {}; allow more open files (ulimit -n), if that is "
                    "the reason",
                    std::strerror(errno)));
  }
  return socket;
}

sockaddr_un path_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    throw UsageError(fmt::format("the path '{}' of a Unix socket must have 1 to {} bytes", path,
                                 sizeof(address.sun_path) - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

bool is_local(const FileDescriptor& socket) {
  int family = 0;
  socklen_t bytes = sizeof(family);
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_DOMAIN, &family, &bytes) == 0 &&
         family == AF_UNIX;
}

std::string objection_to_peer(const FileDescriptor& socket) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) {
    return fmt::format("the system does not say whose process it is: {}", std::strerror(errno));
  }
  if (peer.uid == ::geteuid()) return {};
  return fmt::format("process {} belongs to user {}, and this one to user {}", peer.pid, peer.uid,
                     ::geteuid());
}

FileOffer::FileOffer(const FileDescriptor& file)
    : file_(file), name_(unpredictable_name()), listener_(make_local_socket()) {
  const AbstractAddress address(name_);
  if (::bind(listener_.get(), address.get(), address.bytes) != 0 ||
      ::listen(listener_.get(), SOMAXCONN) != 0) {
    throw TransportError(fmt::format("cannot listen at a Unix socket: {}", std::strerror(errno)));
  }
}

bool send_file(const FileDescriptor& to, const FileDescriptor& file) {
  FileMessage message;
  cmsghdr* part = CMSG_FIRSTHDR(&message.header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  const int descriptor = file.get();
  std::memcpy(CMSG_DATA(part), &descriptor, sizeof(descriptor));
  const Clock::time_point give_up = Clock::now() + std::chrono::seconds(60);
  for (;;) {
    if (::sendmsg(to.get(), &message.header, MSG_NOSIGNAL) == 1) return true;
    // A user may have only so many descriptors on their way; receivers take them meanwhile.
    if (errno != ETOOMANYREFS || is_over(give_up)) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

FileDescriptor FileOffer::accept(Clock::time_point deadline) const {
  while (ready_before(listener_, POLLIN, deadline)) {
    FileDescriptor receiver(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!receiver.valid() && (errno == EMFILE || errno == ENFILE)) {
      log(LogLevel::warning, "cannot hand out shared memory: {}; allow more open files (ulimit -n)",
          std::strerror(errno));
      return FileDescriptor();
    }
    if (!receiver.valid()) continue;
    const std::string objection = objection_to_peer(receiver);
    if (objection.empty()) {
      // A receiver that was stopped must not keep the sender.
      const timeval patience{60, 0};
      static_cast<void>(
          ::setsockopt(receiver.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)));
      return receiver;
    }
    log(LogLevel::warning, "refused the memory of this host's ranks to a process: {}", objection);
  }
  return FileDescriptor();
}

void FileOffer::give(int receivers, Clock::time_point deadline) const {
  for (; receivers > 0; --receivers) {
    const FileDescriptor receiver = accept(deadline);
    if (!receiver.valid()) return;
    static_cast<void>(send_file(receiver, file_));  // fails only if the receiver is gone
  }
}

FileDescriptor ask_for_file(const std::string& name, Clock::time_point deadline) {
  FileDescriptor socket = make_local_socket();
  const AbstractAddress address(name);
  int code = ::connect(socket.get(), address.get(), address.bytes);
  // Accepted only after all ranks have asked, so the queue may be full, also with other users, who
  // see the name.
  while (code != 0 && errno == EAGAIN && Clock::now() < deadline) {
    ::sched_yield();
    code = ::connect(socket.get(), address.get(), address.bytes);
  }
  if (code != 0) {
    throw TransportError(
        fmt::format("cannot reach the rank that made this host's shared memory: {}; containers "
                    "share memory where they share the network (--network=host)",
                    std::strerror(errno)));
  }
  const std::string objection = objection_to_peer(socket);
  if (!objection.empty()) {
    throw TransportError("does not trust the maker of this host's shared memory: " + objection);
  }
  return socket;
}

FileDescriptor receive_file(const FileDescriptor& asked, Clock::time_point deadline) {
  FileMessage message;
  const bool ready = ready_before(asked, POLLIN, deadline);
  if (!ready || ::recvmsg(asked.get(), &message.header, MSG_CMSG_CLOEXEC) != 1) {
    throw TransportError(
        "did not get the shared memory of this host from the rank that made it: does that rank "
        "have file descriptors left (ulimit -n)?");
  }
  const cmsghdr* part = CMSG_FIRSTHDR(&message.header);
  if (part == nullptr || part->cmsg_type != SCM_RIGHTS || part->cmsg_len != CMSG_LEN(sizeof(int))) {
    throw TransportError("got no shared memory: are there file descriptors left (ulimit -n)?");
  }
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(part), sizeof(descriptor));
  return FileDescriptor(descriptor);
}

}  // namespace rondo::detail
