#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "bootstrap/local_socket.hpp"
#include "bootstrap/meeting_point.hpp"

namespace rondo::detail {
namespace {

constexpr mode_t kMine = S_IRUSR | S_IWUSR;

// Zero if there is nothing.
ino_t number_at(const std::string& path) {
  struct stat facts{};
  return ::lstat(path.c_str(), &facts) == 0 ? facts.st_ino : 0;
}

// The name of the socket that this process has made.
struct Name {
  std::string path;
  ino_t number = 0;

  Name(std::string its_path, ino_t its_number) : path(std::move(its_path)), number(its_number) {}
  Name(const Name&) = delete;
  Name& operator=(const Name&) = delete;
  // Removes the path, unless another process has put its own socket there.
  ~Name() {
    if (number != 0 && number_at(path) == number) ::unlink(path.c_str());
  }
};

bool bind_to(const FileDescriptor& listener, const std::string& path) {
  const sockaddr_un address = path_address(path);
  return ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

// Whether a socket of this user's is there at which nobody listens.
bool is_abandoned(const std::string& path) {
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) != 0) return false;
  if (!S_ISSOCK(facts.st_mode) || facts.st_uid != ::geteuid()) return false;
  const FileDescriptor socket = make_local_socket();
  const sockaddr_un address = path_address(path);
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
             0 &&
         errno == ECONNREFUSED;
}

// What the umask took away. Does not follow a link, which somebody may have put in the socket's
// place; for that the C library needs /proc, and where that is missing, only a umask that takes
// rights from their own user leaves this rank unreachable.
void give_back_rights(const std::string& path) {
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) == 0 && (facts.st_mode & kMine) == kMine) return;
  if (::fchmodat(AT_FDCWD, path.c_str(), kMine, AT_SYMLINK_NOFOLLOW) == 0) return;
  throw TransportError(
      fmt::format("cannot give this user back the right to use {}, which the umask took away: {}; "
                  "start the ranks with another umask (umask 077)",
                  path, std::strerror(errno)));
}

Listening listen_at_path(const std::string& path) {
  FileDescriptor listener = make_local_socket();
  // The path is made with these rights, less what the process's umask takes away.
  const bool mode_set = ::fchmod(listener.get(), kMine) == 0;
  bool bound = mode_set && bind_to(listener, path);
  int code = errno;
  // A rank 0 of an earlier run that was killed has left its socket.
  if (!bound && mode_set && code == EADDRINUSE && is_abandoned(path)) {
    ::unlink(path.c_str());
    bound = bind_to(listener, path);
    code = errno;
  }
  if (!bound) {
    const char* cure =
        code == EADDRINUSE ? "; is it used by another run, or no socket of this user?" : "";
    throw TransportError(
        fmt::format("cannot make the socket {}: {}{}", path, std::strerror(code), cure));
  }
  const auto name = std::make_shared<Name>(path, number_at(path));
  give_back_rights(path);
  if (::listen(listener.get(), SOMAXCONN) != 0) {
    throw TransportError(fmt::format("cannot listen at {}: {}", path, std::strerror(errno)));
  }
  Listening listening;
  listening.listeners.push_back(std::move(listener));
  listening.objection = [name = name.get()]() -> std::string {
    if (number_at(name->path) == name->number) return {};
    return fmt::format("from_socket: another process came to {} as rank 0, or somebody removed it",
                       name->path);
  };
  listening.sign = name;
  return listening;
}

}  // namespace

MeetingPoint meet_at_path(const std::string& path, std::string run) {
  static_cast<void>(path_address(path));  // throws where there is none
  return {.name = path,
          .caller = "from_socket",
          .run = std::move(run),
          .listen = [path](Clock::time_point) { return listen_at_path(path); },
          .find = [path](Clock::time_point, std::uint16_t) { return Target{.path = path}; }};
}

}  // namespace rondo::detail
