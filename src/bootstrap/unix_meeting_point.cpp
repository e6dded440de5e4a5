#include "bootstrap/unix_meeting_point.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "bootstrap/local_socket.hpp"

namespace rondo::detail {
namespace {

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

class UnixMeetingPoint final : public MeetingPoint {
 public:
  UnixMeetingPoint(const std::string& path, std::string run)
      : MeetingPoint(std::move(run)), path_(path), address_(address_of(path)) {}
  ~UnixMeetingPoint() override { remove_name(); }

  [[nodiscard]] const std::string& name() const override { return path_; }
  [[nodiscard]] const char* caller() const override { return "from_socket"; }
  std::vector<FileDescriptor> listen(Clock::time_point deadline) override;
  void close() noexcept override { remove_name(); }
  [[nodiscard]] std::string objection_to_myself() const override;
  [[nodiscard]] std::string objection_to_stranger(const FileDescriptor& socket) const override {
    return objection_to_peer(socket);
  }
  Attempt try_connect(int rank, Clock::time_point deadline) override;

 private:
  // Removes the path, unless another process has put its own socket there.
  void remove_name() noexcept {
    const ino_t mine = std::exchange(number_, 0);
    if (mine != 0 && number_at_path() == mine) ::unlink(path_.c_str());
  }
  [[nodiscard]] bool bind(const FileDescriptor& listener) const;
  // Whether a socket of this user's is there at which nobody listens.
  [[nodiscard]] bool is_abandoned() const;
  // Zero if there is nothing.
  [[nodiscard]] ino_t number_at_path() const;
  void give_back_rights() const;

  std::string path_;
  sockaddr_un address_;
  ino_t number_ = 0;  // of the socket that this process has made
};

bool UnixMeetingPoint::bind(const FileDescriptor& listener) const {
  return ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof(address_)) ==
         0;
}

bool UnixMeetingPoint::is_abandoned() const {
  struct stat facts{};
  if (::lstat(path_.c_str(), &facts) != 0) return false;
  if (!S_ISSOCK(facts.st_mode) || facts.st_uid != ::geteuid()) return false;
  const FileDescriptor socket = make_local_socket();
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof(address_)) !=
             0 &&
         errno == ECONNREFUSED;
}

ino_t UnixMeetingPoint::number_at_path() const {
  struct stat facts{};
  return ::lstat(path_.c_str(), &facts) == 0 ? facts.st_ino : 0;
}

std::vector<FileDescriptor> UnixMeetingPoint::listen(Clock::time_point /*deadline*/) {
  FileDescriptor listener = make_local_socket();
  // The path is made with these rights, less what the process's umask takes away.
  const bool mode_set = ::fchmod(listener.get(), S_IRUSR | S_IWUSR) == 0;
  bool bound = mode_set && bind(listener);
  int code = errno;
  // A rank 0 of an earlier run that was killed has left its socket.
  if (!bound && mode_set && code == EADDRINUSE && is_abandoned()) {
    ::unlink(path_.c_str());
    bound = bind(listener);
    code = errno;
  }
  if (!bound) {
    const char* cure =
        code == EADDRINUSE ? "; is it used by another run, or no socket of this user?" : "";
    throw TransportError(
        fmt::format("cannot make the socket {}: {}{}", path_, std::strerror(code), cure));
  }
  number_ = number_at_path();
  give_back_rights();
  if (::listen(listener.get(), SOMAXCONN) != 0) {
    throw TransportError(fmt::format("cannot listen at {}: {}", path_, std::strerror(errno)));
  }
  std::vector<FileDescriptor> listeners;
  listeners.push_back(std::move(listener));
  return listeners;
}

// What the umask took away. Does not follow a link, which somebody may have put in the socket's
// place; for that the C library needs /proc, and where that is missing, only a umask that takes
// rights from their own user leaves this rank unreachable.
void UnixMeetingPoint::give_back_rights() const {
  struct stat facts{};
  constexpr mode_t kMine = S_IRUSR | S_IWUSR;
  if (::lstat(path_.c_str(), &facts) == 0 && (facts.st_mode & kMine) == kMine) return;
  if (::fchmodat(AT_FDCWD, path_.c_str(), kMine, AT_SYMLINK_NOFOLLOW) == 0) return;
  throw TransportError(
      fmt::format("cannot give this user back the right to use {}, which the umask took away: {}; "
                  "start the ranks with another umask (umask 077)",
                  path_, std::strerror(errno)));
}

std::string UnixMeetingPoint::objection_to_myself() const {
  if (number_at_path() == number_) return {};
  return fmt::format("from_socket: another process came to {} as rank 0, or somebody removed it",
                     path_);
}

Attempt UnixMeetingPoint::try_connect(int rank, Clock::time_point /*deadline*/) {
  FileDescriptor socket = make_local_socket();
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof(address_)) !=
      0) {
    const int code = errno;
    // Rank 0 may not be there yet.
    const bool early = code == ENOENT || code == ECONNREFUSED || code == EAGAIN || code == EINTR;
    if (early) return {FileDescriptor(), std::strerror(code)};
    throw TransportError(
        fmt::format("rank {} cannot connect to {}: {}{}", rank, path_, std::strerror(code),
                    code == EACCES ? "; does the path belong to another user?" : ""));
  }
  const std::string objection = objection_to_peer(socket);
  if (!objection.empty()) {
    throw TransportError(fmt::format(
        "rank {} does not trust who listens at {}: {}. Choose a path in a folder that only you may "
        "write to",
        rank, path_, objection));
  }
  return {std::move(socket)};
}

}  // namespace

std::unique_ptr<MeetingPoint> meet_at_path(const std::string& path, std::string run) {
  return std::make_unique<UnixMeetingPoint>(path, std::move(run));
}

}  // namespace rondo::detail
