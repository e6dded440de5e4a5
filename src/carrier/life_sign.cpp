#include "carrier/life_sign.hpp"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/file_descriptor.hpp"
#include "base/keep_loaded.hpp"
#include "base/kept_socket.hpp"
#include "base/random_number.hpp"

namespace rondo::detail {
namespace {

struct OwnSign {
  std::mutex mutex;
  KeptSocket socket;
  LifeSign sign = 0;
};

// Never destroyed: a static communicator may be destroyed later than any static of the library.
OwnSign& own() {
  static OwnSign& instance = *new OwnSign;
  return instance;
}

struct Name {
  sockaddr_un address{};
  socklen_t bytes = 0;

  explicit Name(LifeSign sign) {
    const std::string name = fmt::format("rondo-life-{:016x}", sign);
    address.sun_family = AF_UNIX;
    std::copy(name.begin(), name.end(), address.sun_path + 1);  // after a zero: abstract
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

// A child is another process: its parent's sign must go when the parent ends.
void handle_forks() {
  static const int registered =
      ::pthread_atfork([] { own().mutex.lock(); }, [] { own().mutex.unlock(); },
                       [] {
                         own().socket = KeptSocket();
                         own().sign = 0;
                         own().mutex.unlock();
                       });
  static_cast<void>(registered);
}

}  // namespace

LifeSign life_sign_of_this_process() {
  handle_forks();
  OwnSign& mine = own();
  const std::lock_guard lock(mine.mutex);
  if (mine.socket.valid()) return mine.sign;
  FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const LifeSign sign = random_number();
  const Name name(sign);
  if (!socket.valid() || ::bind(socket.get(), name.get(), name.bytes) != 0) return 0;
  ::shutdown(socket.get(), SHUT_RD);  // nobody reads what comes
  keep_loaded();                      // else the next load would make another one
  mine.socket = KeptSocket(std::move(socket));
  mine.sign = sign;
  return sign;
}

// Sends an empty message to the sign's socket. A socket that is shut for reading refuses the
// message with another error than the one for a socket that does not exist.
std::optional<bool> shows_life(LifeSign sign) {
  const std::lock_guard lock(own().mutex);
  if (!own().socket.valid()) return std::nullopt;
  const Name name(sign);
  const ssize_t sent = ::sendto(own().socket.get().get(), nullptr, 0, MSG_DONTWAIT | MSG_NOSIGNAL,
                                name.get(), name.bytes);
  return sent >= 0 || errno != ECONNREFUSED;
}

}  // namespace rondo::detail
