#include "bootstrap/unix_meeting_point.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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
  explicit UnixMeetingPoint(const std::string& path) : path_(path), address_(address_of(path)) {}
  ~UnixMeetingPoint() override { remove_name(); }

  [[nodiscard]] const std::string& name() const override { return path_; }
  [[nodiscard]] const char* caller() const override { return "from_socket"; }
  std::vector<FileDescriptor> listen(Clock::time_point deadline) override;
  void close() noexcept override { remove_name(); }
  [[nodiscard]] std::string objection_to_visitor(const FileDescriptor& socket) const override {
    return objection_to_peer(socket);
  }
  Attempt try_connect(int rank, Clock::time_point deadline) override;

 private:
  void remove_name() noexcept {
    if (std::exchange(named_, false)) ::unlink(path_.c_str());
  }

  std::string path_;
  sockaddr_un address_;
  bool named_ = false;  // by this process
};

std::vector<FileDescriptor> UnixMeetingPoint::listen(Clock::time_point /*deadline*/) {
  FileDescriptor listener = make_local_socket();
  // The path is made with these rights, less what the process's umask takes away.
  if (::fchmod(listener.get(), S_IRUSR | S_IWUSR) != 0 ||
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof(address_)) != 0) {
    const char* cure =
        errno == EADDRINUSE ? "; is it left from an earlier run, or used by another?" : "";
    throw TransportError(
        fmt::format("cannot make the socket {}: {}{}", path_, std::strerror(errno), cure));
  }
  named_ = true;
  // Gives back what the umask took away. Does not follow a link, which somebody may have put in the socket's place.
  if (::fchmodat(AT_FDCWD, path_.c_str(), S_IRUSR | S_IWUSR, AT_SYMLINK_NOFOLLOW) != 0 ||
      ::listen(listener.get(), SOMAXCONN) != 0) {
    throw TransportError(fmt::format("cannot listen at {}: {}", path_, std::strerror(errno)));
  }
  std::vector<FileDescriptor> listeners;
  listeners.push_back(std::move(listener));
  return listeners;
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

std::unique_ptr<MeetingPoint> meet_at_path(const std::string& path) {
  return std::make_unique<UnixMeetingPoint>(path);
}

}  // namespace rondo::detail
