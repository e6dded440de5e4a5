#include "bootstrap/connect_to_any.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "bootstrap/sockets.hpp"

namespace rondo::detail {
namespace {

// How long an address may take to answer before the next one is tried, too; as in RFC 8305
// ("Happy Eyeballs").
constexpr std::chrono::milliseconds kHeadStart{250};
// How long all addresses together may take, in addition to these head starts.
constexpr std::chrono::milliseconds kOneTry{2000};

// Connects to one of several addresses: to the next one when the ones before have failed, or have
// not answered for a while.
class Connecting {
 public:
  Connecting(const std::vector<Address>& addresses, Clock::time_point deadline)
      : addresses_(addresses), deadline_(deadline) {}

  Attempt run() {
    for (;;) {
      const bool starts = next_ < addresses_.size() && (open_.empty() || Clock::now() >= next_at_);
      if (starts) {
        start(addresses_[next_++]);
      } else if (open_.empty() || Clock::now() > deadline_) {
        break;
      } else {
        wait();
      }
      if (FileDescriptor connected = find_connected(); connected.valid()) {
        return {std::move(connected)};
      }
    }
    for (const Try& one : open_) note(*one.address, "no reply");
    return {FileDescriptor(), std::move(why_not_)};
  }

 private:
  struct Try {
    const Address* address = nullptr;
    FileDescriptor socket = FileDescriptor();
  };

  void start(const Address& address) {
    FileDescriptor socket = make_tcp_socket(address.storage.ss_family);
    switch_on(socket, IPPROTO_TCP, TCP_NODELAY);
    switch_on(socket, SOL_SOCKET, SO_KEEPALIVE);
    next_at_ = Clock::now() + kHeadStart;
    if (::connect(socket.get(), address.get(), address.bytes) == 0 || errno == EINPROGRESS) {
      open_.push_back({&address, std::move(socket)});
    } else {
      note(address, std::strerror(errno));
    }
  }

  void wait() const {
    const Clock::time_point until =
        next_ < addresses_.size() ? std::min(next_at_, deadline_) : deadline_;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    std::vector<pollfd> requests;
    for (const Try& one : open_) requests.push_back({one.socket.get(), POLLOUT, 0});
    const auto most = std::clamp<std::int64_t>(left.count() + 1, 0, 1000);
    ::poll(requests.data(), requests.size(), static_cast<int>(most));
  }

  FileDescriptor find_connected() {
    for (auto one = open_.begin(); one != open_.end();) {
      pollfd request{one->socket.get(), POLLOUT, 0};
      if (::poll(&request, 1, 0) <= 0) {
        ++one;
        continue;
      }
      int code = 0;
      socklen_t bytes = sizeof(code);
      ::getsockopt(one->socket.get(), SOL_SOCKET, SO_ERROR, &code, &bytes);
      // A socket without a listener may connect to itself, if the system gives it the very port
      // that it connects to.
      const bool itself =
          code == 0 && address_of(one->socket).text() == peer_address_of(one->socket).text();
      if (code == 0 && !itself) return std::move(one->socket);
      note(*one->address, itself ? "nobody listens" : std::strerror(code));
      one = open_.erase(one);
    }
    return FileDescriptor();
  }

  void note(const Address& address, const std::string& why) {
    why_not_ += fmt::format("{}{}: {}", why_not_.empty() ? "" : ", ", address.text(), why);
  }

  const std::vector<Address>& addresses_;
  Clock::time_point deadline_;
  std::size_t next_ = 0;
  Clock::time_point next_at_;
  std::vector<Try> open_;
  std::string why_not_;
};

}  // namespace

Attempt connect_to_any(const std::vector<Address>& addresses, Clock::time_point deadline) {
  // A try that is not answered is made again by the caller, who may find another address by then.
  const auto patience = kOneTry + kHeadStart * static_cast<int>(addresses.size());
  return Connecting(addresses, std::min(deadline, deadline_after(patience))).run();
}

}  // namespace rondo::detail
