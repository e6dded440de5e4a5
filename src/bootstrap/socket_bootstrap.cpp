#include "bootstrap/socket_bootstrap.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/log.hpp"
#include "base/put.hpp"
#include "bootstrap/local_socket.hpp"

namespace rondo::detail {

namespace {

constexpr std::uint64_t kMagic = 0x32306F646E6F7271U;

// What a rank says as it comes.
struct Hello {
  std::uint64_t magic = kMagic;
  std::int32_t rank = 0;
  std::int32_t size = 0;
};

}  // namespace

// Somebody who has come to rank 0 and has not said yet who it is.
class Visitor {
 public:
  explicit Visitor(FileDescriptor socket) : socket_(std::move(socket)) {}

  [[nodiscard]] const FileDescriptor& socket() const { return socket_; }
  FileDescriptor take_socket() { return std::move(socket_); }

  // Reads what is there. False when the visitor is gone or says something that no rank says.
  bool listen() {
    auto* bytes = reinterpret_cast<char*>(&hello_);
    const ssize_t received =
        ::recv(socket_.get(), bytes + heard_, sizeof(hello_) - heard_, MSG_DONTWAIT);
    if (received < 0) return errno == EINTR || errno == EAGAIN;
    if (received == 0) return false;
    heard_ += static_cast<std::size_t>(received);
    return heard_ < sizeof(hello_.magic) || hello_.magic == kMagic;
  }
  // Once all of it is there.
  [[nodiscard]] const Hello* hello() const { return heard_ == sizeof(hello_) ? &hello_ : nullptr; }

 private:
  FileDescriptor socket_;
  Hello hello_{0, 0, 0};
  std::size_t heard_ = 0;
};

namespace {

// What rank 0 says to all that have come.
enum class Verdict : std::uint8_t { welcome, usage, timeout, transport };
struct Answer {
  Verdict verdict = Verdict::welcome;
  std::array<char, 511> reason{};
};

Answer answer_for(const std::exception_ptr& refusal) {
  Answer answer;
  if (refusal == nullptr) return answer;
  try {
    std::rethrow_exception(refusal);
  } catch (const UsageError& error) {
    answer.verdict = Verdict::usage;
    put(answer.reason, error.what());
  } catch (const TimeoutError& error) {
    answer.verdict = Verdict::timeout;
    put(answer.reason, error.what());
  } catch (const std::exception& error) {
    answer.verdict = Verdict::transport;
    put(answer.reason, error.what());
  }
  return answer;
}

void throw_refusal(const Answer& answer) {
  if (answer.verdict == Verdict::usage) throw UsageError(answer.reason.data());
  if (answer.verdict == Verdict::timeout) throw TimeoutError(answer.reason.data());
  if (answer.verdict == Verdict::transport) throw TransportError(answer.reason.data());
}

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

// Everyone who has come since the last look, but for other users' processes.
void let_in(const FileDescriptor& listener, std::vector<Visitor>& visitors) {
  for (;;) {
    FileDescriptor socket(
        ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid() && (errno == EMFILE || errno == ENFILE)) {
      throw TransportError(
          fmt::format("from_socket: rank 0 cannot take in more ranks: {}; allow more open files "
                      "(ulimit -n)",
                      std::strerror(errno)));
    }
    if (!socket.valid()) return;
    const std::string objection = objection_to_peer(socket);
    if (objection.empty()) {
      visitors.emplace_back(std::move(socket));
    } else {
      log(LogLevel::warning, "from_socket: rank 0 sends somebody away: {}", objection);
    }
  }
}

// Until something has come from the listener or a visitor; false when the deadline has passed.
bool wait_for_any(const FileDescriptor& listener, const std::vector<Visitor>& visitors,
                  Clock::time_point deadline) {
  std::vector<pollfd> requests = {{listener.get(), POLLIN, 0}};
  for (const Visitor& visitor : visitors) requests.push_back({visitor.socket().get(), POLLIN, 0});
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const auto wait = static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, 1000));
    if (::poll(requests.data(), requests.size(), wait) > 0) return true;
    if (left < 0) return false;
  }
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
    listen_for_all(path);
  } else {
    connect_to_first(path);
  }
}

void SocketBootstrap::listen_for_all(const std::string& path) {
  const sockaddr_un address = address_of(path);
  const FileDescriptor listener = make_local_socket();
  // The path is made with these rights, less what the process's umask takes away.
  if (::fchmod(listener.get(), S_IRUSR | S_IWUSR) != 0 ||
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const char* cure =
        errno == EADDRINUSE ? "; is it left from an earlier run, or used by another?" : "";
    throw TransportError(
        fmt::format("cannot make the socket {}: {}{}", path, std::strerror(errno), cure));
  }
  const SocketName name(path);
  // Gives back what the umask took away. Does not follow a link, which somebody may have put in the socket's place.
  if (::fchmodat(AT_FDCWD, path.c_str(), S_IRUSR | S_IWUSR, AT_SYMLINK_NOFOLLOW) != 0 ||
      ::listen(listener.get(), SOMAXCONN) != 0) {
    throw TransportError(fmt::format("cannot listen at {}: {}", path, std::strerror(errno)));
  }
  sockets_.resize(static_cast<std::size_t>(size_));
  try {
    admit_all(listener, path);
  } catch (...) {
    answer_all(std::current_exception());
    throw;
  }
  answer_all(nullptr);
}

void SocketBootstrap::admit_all(const FileDescriptor& listener, const std::string& path) {
  std::vector<Visitor> visitors;
  try {
    admit(listener, visitors, path);
  } catch (...) {
    // Who has come and was not heard yet is told as well.
    try {
      let_in(listener, visitors);
    } catch (const TransportError&) {
      // There is no room for them.
    }
    for (Visitor& visitor : visitors) sockets_.push_back(visitor.take_socket());
    throw;
  }
}

void SocketBootstrap::admit(const FileDescriptor& listener, std::vector<Visitor>& visitors,
                            const std::string& path) {
  for (int known = 1; known < size_;) {
    if (!wait_for_any(listener, visitors, deadline_)) throw_missing(path);
    let_in(listener, visitors);
    for (std::size_t i = 0; i < visitors.size();) {
      const bool stays = visitors[i].listen();
      const Hello* hello = visitors[i].hello();
      if (stays && hello == nullptr) {
        ++i;
        continue;
      }
      Visitor visitor = std::move(visitors[i]);
      visitors.erase(visitors.begin() + static_cast<std::ptrdiff_t>(i));
      hello = visitor.hello();
      if (!stays) {
        log(LogLevel::warning, "from_socket: somebody came to {} and left, or is no rank", path);
        continue;
      }
      const bool fits = hello->rank > 0 && hello->rank < size_ && hello->size == size_;
      FileDescriptor* seat = fits ? &sockets_[static_cast<std::size_t>(hello->rank)] : nullptr;
      if (seat == nullptr || seat->valid()) {
        const std::string text = fmt::format(
            "from_socket: somebody came to {} as rank {} of {}, but rank 0 was told of {} ranks, "
            "each of which comes once",
            path, hello->rank, hello->size, size_);
        sockets_.push_back(visitor.take_socket());  // is told as well
        throw UsageError(text);
      }
      *seat = visitor.take_socket();
      ++known;
    }
  }
}

void SocketBootstrap::answer_all(const std::exception_ptr& refusal) noexcept {
  const Answer answer = answer_for(refusal);
  for (const FileDescriptor& socket : sockets_) {
    if (!socket.valid()) continue;
    // It fits the empty buffer of a new socket. Who has left is found when blobs are exchanged.
    static_cast<void>(::send(socket.get(), &answer, sizeof(answer), MSG_NOSIGNAL));
  }
}

void SocketBootstrap::throw_missing(const std::string& path) const {
  std::string missing;
  for (int rank = 1; rank < size_; ++rank) {
    if (sockets_[static_cast<std::size_t>(rank)].valid()) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  }
  throw TimeoutError(fmt::format("rank 0 waited {} ms at {} for ranks that did not come: {}",
                                 timeout_.count(), path, missing));
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
  // Rank 0 answers at the latest when its own deadline, which has begun by now, has passed: it names who is missing.
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
