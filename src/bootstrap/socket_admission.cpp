#include "bootstrap/socket_admission.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/log.hpp"
#include "base/put.hpp"
#include "bootstrap/local_socket.hpp"

namespace rondo::detail {
namespace {

// A process that has connected to rank 0 and has not sent all of its Hello yet.
class Visitor {
 public:
  explicit Visitor(FileDescriptor socket) : socket_(std::move(socket)) {}

  [[nodiscard]] const FileDescriptor& socket() const { return socket_; }
  FileDescriptor take_socket() { return std::move(socket_); }

  // Reads what has arrived. False when the visitor has closed the connection, or what it sent is not a Hello.
  bool listen() {
    auto* bytes = reinterpret_cast<char*>(&hello_);
    const ssize_t received =
        ::recv(socket_.get(), bytes + heard_, sizeof(hello_) - heard_, MSG_DONTWAIT);
    if (received < 0) return errno == EINTR || errno == EAGAIN;
    if (received == 0) return false;
    heard_ += static_cast<std::size_t>(received);
    return heard_ < sizeof(hello_.magic) || hello_.magic == kMagic;
  }
  // Null until all of it has arrived.
  [[nodiscard]] const Hello* hello() const { return heard_ == sizeof(hello_) ? &hello_ : nullptr; }

 private:
  FileDescriptor socket_;
  Hello hello_{0, 0, 0};
  std::size_t heard_ = 0;
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

// Accepts all waiting connections, except those of other users' processes.
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
      log(LogLevel::warning, "from_socket: rank 0 refuses a connection: {}", objection);
    }
  }
}

// Waits until the listener or a visitor has something to read; false when the deadline has passed.
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

class Admission {
 public:
  Admission(const std::string& path, int size, std::chrono::milliseconds timeout,
            Clock::time_point deadline)
      : path_(path), size_(size), timeout_(timeout), deadline_(deadline) {}

  std::vector<FileDescriptor> run();

 private:
  void admit_all(const FileDescriptor& listener);
  void admit(const FileDescriptor& listener, std::vector<Visitor>& visitors);
  void answer_all(const std::exception_ptr& refusal) const noexcept;
  [[noreturn]] void throw_missing() const;

  const std::string& path_;
  int size_;
  std::chrono::milliseconds timeout_;
  Clock::time_point deadline_;
  std::vector<FileDescriptor> sockets_;  // by rank; then those of others, who are told a refusal
};

std::vector<FileDescriptor> Admission::run() {
  const sockaddr_un address = address_of(path_);
  const FileDescriptor listener = make_local_socket();
  // The path is made with these rights, less what the process's umask takes away.
  if (::fchmod(listener.get(), S_IRUSR | S_IWUSR) != 0 ||
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const char* cure =
        errno == EADDRINUSE ? "; is it left from an earlier run, or used by another?" : "";
    throw TransportError(
        fmt::format("cannot make the socket {}: {}{}", path_, std::strerror(errno), cure));
  }
  const SocketName name(path_);
  // Gives back what the umask took away. Does not follow a link, which somebody may have put in the socket's place.
  if (::fchmodat(AT_FDCWD, path_.c_str(), S_IRUSR | S_IWUSR, AT_SYMLINK_NOFOLLOW) != 0 ||
      ::listen(listener.get(), SOMAXCONN) != 0) {
    throw TransportError(fmt::format("cannot listen at {}: {}", path_, std::strerror(errno)));
  }
  sockets_.resize(static_cast<std::size_t>(size_));
  try {
    admit_all(listener);
  } catch (...) {
    answer_all(std::current_exception());
    throw;
  }
  answer_all(nullptr);
  return std::move(sockets_);
}

void Admission::admit_all(const FileDescriptor& listener) {
  std::vector<Visitor> visitors;
  try {
    admit(listener, visitors);
  } catch (...) {
    // Processes whose connection was not accepted, or whose Hello was not read yet, get the answer as well.
    try {
      let_in(listener, visitors);
    } catch (const TransportError&) {
      // No file descriptors are left to accept them.
    }
    for (Visitor& visitor : visitors) sockets_.push_back(visitor.take_socket());
    throw;
  }
}

void Admission::admit(const FileDescriptor& listener, std::vector<Visitor>& visitors) {
  for (int known = 1; known < size_;) {
    if (!wait_for_any(listener, visitors, deadline_)) throw_missing();
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
        log(LogLevel::warning, "from_socket: a process connected to {} and left, or is not a rank",
            path_);
        continue;
      }
      const bool fits = hello->rank > 0 && hello->rank < size_ && hello->size == size_;
      FileDescriptor* seat = fits ? &sockets_[static_cast<std::size_t>(hello->rank)] : nullptr;
      if (seat == nullptr || seat->valid()) {
        const std::string text = fmt::format(
            "from_socket: somebody came to {} as rank {} of {}, but rank 0 was told of {} ranks, "
            "each of which comes once",
            path_, hello->rank, hello->size, size_);
        sockets_.push_back(visitor.take_socket());  // gets the answer as well
        throw UsageError(text);
      }
      *seat = visitor.take_socket();
      ++known;
    }
  }
}

void Admission::answer_all(const std::exception_ptr& refusal) const noexcept {
  const Answer answer = answer_for(refusal);
  for (const FileDescriptor& socket : sockets_) {
    if (!socket.valid()) continue;
    // The answer fits the empty buffer of a new socket. A rank that has left is noticed when blobs are exchanged.
    static_cast<void>(::send(socket.get(), &answer, sizeof(answer), MSG_NOSIGNAL));
  }
}

void Admission::throw_missing() const {
  std::string missing;
  for (int rank = 1; rank < size_; ++rank) {
    if (sockets_[static_cast<std::size_t>(rank)].valid()) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  }
  throw TimeoutError(fmt::format("rank 0 waited {} ms at {} for ranks that did not come: {}",
                                 timeout_.count(), path_, missing));
}

}  // namespace

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

std::vector<FileDescriptor> admit_ranks(const std::string& path, int size,
                                        std::chrono::milliseconds timeout,
                                        Clock::time_point deadline) {
  return Admission(path, size, timeout, deadline).run();
}

}  // namespace rondo::detail
