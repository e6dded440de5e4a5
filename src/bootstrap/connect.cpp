#include "bootstrap/connect.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "bootstrap/local_socket.hpp"

namespace rondo::detail {
namespace {

using asio::ip::tcp;

// How long an address may take to answer before the next one is tried, too; as in RFC 8305
// ("Happy Eyeballs").
constexpr std::chrono::milliseconds kHeadStart{250};
// How long all addresses together may take, in addition to these head starts.
constexpr std::chrono::milliseconds kOneTry{2000};

// Connects to one of several addresses: to the next one when the ones before have failed, or have
// not answered for a while.
class Race {
 public:
  Race(asio::io_context& network, const std::vector<Address>& addresses)
      : network_(network), addresses_(addresses) {}
  Race(const Race&) = delete;
  Race& operator=(const Race&) = delete;
  // What still waits ends here, as long as this object is there.
  ~Race() {
    over_ = true;
    head_start_.cancel();
    open_.clear();
    network_.restart();
    network_.poll();
  }

  Attempt run(Clock::time_point deadline) {
    start_next();
    run_until(network_, deadline);
    if (winner_.valid()) return {std::move(winner_)};
    for (const Try& one : open_) note(one.address, "no reply");
    return {FileDescriptor(), std::move(why_not_)};
  }

 private:
  struct Try {
    const Address& address;
    tcp::socket socket;
  };

  void start_next() {
    head_start_.cancel();
    if (next_ == addresses_.size()) return;
    const Address& address = addresses_[next_++];
    // Asio does not make the socket, since a child process would inherit Asio's.
    FileDescriptor socket = make_tcp_socket(address);
    if (!socket.valid()) {
      note(address, std::strerror(errno));
      return start_next();
    }
    const auto one = open_.insert(open_.end(), Try{address, tcp::socket(network_)});
    one->socket.assign(address.protocol(), socket.get());
    static_cast<void>(socket.release());
    one->socket.async_connect(address, [this, one](std::error_code code) {
      if (!over_) judge(one, code);
    });
    head_start_.expires_after(kHeadStart);
    head_start_.async_wait([this](std::error_code code) {
      if (!over_ && !code) start_next();
    });
  }

  void judge(std::list<Try>::iterator one, std::error_code code) {
    std::error_code ignored;
    // A socket without a listener may connect to itself, if the system gives it the very port that
    // it connects to.
    const bool itself =
        !code && one->socket.local_endpoint(ignored) == one->socket.remote_endpoint(ignored);
    if (!code && !itself) {
      winner_ = FileDescriptor(one->socket.release());
      over_ = true;
      network_.stop();
      return;
    }
    note(one->address, itself ? "nobody listens" : code.message());
    open_.erase(one);
    start_next();
  }

  void note(const Address& address, const std::string& why) {
    why_not_ += fmt::format("{}{}: {}", why_not_.empty() ? "" : ", ", text_of(address), why);
  }

  asio::io_context& network_;
  const std::vector<Address>& addresses_;
  asio::steady_timer head_start_{network_};
  std::size_t next_ = 0;
  std::list<Try> open_;
  FileDescriptor winner_;
  bool over_ = false;
  std::string why_not_;
};

Attempt connect_to_path(const std::string& path) {
  FileDescriptor socket = make_local_socket();
  const sockaddr_un address = path_address(path);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const int code = errno;
    // Rank 0 may not be there yet.
    const bool early = code == ENOENT || code == ECONNREFUSED || code == EAGAIN || code == EINTR;
    if (early) return {FileDescriptor(), std::strerror(code)};
    throw TransportError(
        fmt::format("this rank cannot connect to {}: {}{}", path, std::strerror(code),
                    code == EACCES ? "; does the path belong to another user?" : ""));
  }
  const std::string objection = objection_to_peer(socket);
  if (!objection.empty()) {
    throw TransportError(fmt::format(
        "this rank does not trust who listens at {}: {}. Choose a path in a folder that only you "
        "may write to",
        path, objection));
  }
  return {std::move(socket)};
}

}  // namespace

Attempt connect_to_any(asio::io_context& network, const std::vector<Address>& addresses,
                       Clock::time_point deadline) {
  // A try that is not answered is made again by the caller, who may find another address by then.
  const auto patience = kOneTry + kHeadStart * static_cast<int>(addresses.size());
  try {
    return Race(network, addresses).run(std::min(deadline, deadline_after(patience)));
  } catch (const std::system_error& error) {
    throw TransportError(
        fmt::format("cannot connect: {}; allow more open files (ulimit -n), if that is the reason",
                    error.code().message()));
  }
}

Attempt connect_to(asio::io_context& network, const Target& target, Clock::time_point deadline) {
  if (!target.path.empty()) return connect_to_path(target.path);
  if (target.addresses.empty()) return {FileDescriptor(), target.why_not};
  return connect_to_any(network, target.addresses, deadline);
}

}  // namespace rondo::detail
