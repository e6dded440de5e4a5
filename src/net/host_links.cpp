#include "net/host_links.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/random_number.hpp"
#include "base/threads.hpp"

namespace rondo::detail {
namespace {

// Asks after two seconds of silence, and gives up when three questions, two seconds apart, have no
// answer. Data that has no answer for eight seconds also ends the connection: while there is such
// data, the system does not ask.
void keep_alive(const FileDescriptor& socket) {
  const auto set = [&](int level, int name, int value) {
    static_cast<void>(::setsockopt(socket.get(), level, name, &value, sizeof(value)));
  };
  set(IPPROTO_TCP, TCP_KEEPIDLE, 2);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 8000);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
}

// A connection that the other process has closed, or that its system has reset, is no sign of a
// host that vanished.
bool means_vanished(int error) {
  return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH || error == EHOSTDOWN;
}

// False, with errno, where the connection has failed, or has no room, as that of a process that
// does not listen.
bool tell(const FileDescriptor& socket, const HostNotice& notice) {
  return ::send(socket.get(), &notice, sizeof(notice), MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof(notice));
}

}  // namespace

ProcessName name_of_this_process() {
  static std::mutex mutex;
  static pid_t process = 0;
  static ProcessName name = 0;
  const std::lock_guard lock(mutex);
  if (process != ::getpid()) {  // the first call, or that of a forked child
    name = random_number();
    process = ::getpid();
  }
  return name;
}

namespace {

// The objects of this process, for fork(). Never destroyed: a static communicator may be destroyed
// later than any static of the library.
struct Every {
  std::mutex mutex;
  std::vector<HostLinks*> links;
};
Every& every() {
  static Every& instance = *new Every;
  return instance;
}

}  // namespace

std::shared_ptr<HostLinks> HostLinks::of_process() {
  static std::mutex mutex;
  static std::weak_ptr<HostLinks> current;
  const std::lock_guard lock(mutex);
  std::shared_ptr<HostLinks> links = current.lock();
  if (links == nullptr || !links->owner_process_.is_this()) {
    links = std::make_shared<HostLinks>();
    current = links;
  }
  return links;
}

void HostLinks::before_fork() {
  every().mutex.lock();
  for (HostLinks* links : every().links) links->mutex_.lock();
}

void HostLinks::after_fork_in_parent() {
  for (HostLinks* links : every().links) links->mutex_.unlock();
  every().mutex.unlock();
}

void HostLinks::after_fork_in_child() {
  for (HostLinks* links : every().links) {
    for (const auto& link : links->standing()) link->socket = KeptSocket();
  }
  after_fork_in_parent();
}

HostLinks::HostLinks() : wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!wake_.valid()) {
    throw TransportError(fmt::format(
        "eventfd, for the watch over other hosts, failed: {}; more open files may be needed "
        "(ulimit -n)",
        std::strerror(errno)));
  }
  static const int handles_forks =
      ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  static_cast<void>(handles_forks);
  const std::lock_guard lock(every().mutex);
  every().links.push_back(this);
}

HostLinks::~HostLinks() {
  {
    const std::lock_guard lock(every().mutex);
    std::erase(every().links, this);
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
}

HostLink::~HostLink() {
  if (socket.valid()) say_that_this_process_leaves(socket.get());
}

void say_that_this_process_leaves(const FileDescriptor& socket) {
  static_cast<void>(tell(socket, {HostNotice::What::leaves, name_of_this_process()}));
}

std::shared_ptr<HostLink> HostLinks::add(ProcessName peer, FileDescriptor socket) {
  keep_alive(socket);
  auto link = std::make_shared<HostLink>(peer, std::move(socket));
  const std::lock_guard lock(mutex_);
  links_.push_back(link);
  if (!thread_.joinable()) thread_ = start_thread("watches other hosts", [this] { serve(); });
  wake();
  return link;
}

std::shared_ptr<HostLink> HostLinks::find(ProcessName peer) {
  const std::lock_guard lock(mutex_);
  for (std::shared_ptr<HostLink>& link : standing()) {
    if (link->peer == peer) return std::move(link);
  }
  return nullptr;
}

void HostLinks::wake() { static_cast<void>(::eventfd_write(wake_.get(), 1)); }

std::vector<GoneProcess> HostLinks::gone() {
  const std::lock_guard lock(mutex_);
  return gone_;
}

std::vector<std::shared_ptr<HostLink>> HostLinks::standing() {
  std::vector<std::shared_ptr<HostLink>> links;
  links_.erase(std::remove_if(links_.begin(), links_.end(),
                              [&](const std::weak_ptr<HostLink>& held) {
                                std::shared_ptr<HostLink> link = held.lock();
                                const bool stands = link != nullptr && link->socket.valid();
                                if (stands) links.push_back(std::move(link));
                                return !stands;
                              }),
               links_.end());
  return links;
}

void HostLinks::serve() {
  for (;;) {
    std::vector<pollfd> requests{{wake_.get(), POLLIN, 0}};
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      for (const auto& link : standing()) requests.push_back({link->socket.get().get(), POLLIN, 0});
    }
    // A process that has lowered its limit of open files may not poll so many; then they are looked
    // at now and then.
    if (::poll(requests.data(), requests.size(), -1) < 0 && errno != EINTR) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    const std::lock_guard lock(mutex_);
    eventfd_t times = 0;
    static_cast<void>(::eventfd_read(wake_.get(), &times));
    for (const auto& link : standing()) listen(*link);
  }
}

void HostLinks::listen(HostLink& link) {
  for (;;) {
    const ssize_t got = ::recv(link.socket.get().get(), link.received.data() + link.received_bytes,
                               link.received.size() - link.received_bytes, MSG_DONTWAIT);
    if (got > 0) {
      link.received_bytes += static_cast<std::size_t>(got);
      if (link.received_bytes < link.received.size()) continue;
      link.received_bytes = 0;
      heed(link, std::bit_cast<HostNotice>(link.received));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    const bool vanished = got < 0 && means_vanished(errno);
    const bool is_own_end = !link.socket.valid();  // that the program has closed
    link.socket = KeptSocket();
    if (is_own_end) return;
    if (!link.peer_leaves) {
      learn({vanished ? HostNotice::What::vanished : HostNotice::What::ended, link.peer});
    }
    return;
  }
}

void HostLinks::heed(HostLink& link, const HostNotice& notice) {
  if (notice.what == HostNotice::What::leaves) {
    link.peer_leaves = true;
  } else {
    learn(notice);
  }
}

// A process that gets the same notice from several others passes it on once. A failing send takes
// the error from the socket, so that listen() would not see it any more.
void HostLinks::learn(const HostNotice& notice) {
  const bool known = std::any_of(gone_.begin(), gone_.end(), [&](const GoneProcess& one) {
    return one.process == notice.process;
  });
  if (known) return;
  gone_.push_back({notice.process, notice.what == HostNotice::What::vanished, Clock::now()});
  for (const auto& link : standing()) {
    if (!tell(link->socket.get(), notice) && means_vanished(errno)) {
      link->socket = KeptSocket();
      learn({HostNotice::What::vanished, link->peer});
    }
  }
}

}  // namespace rondo::detail
