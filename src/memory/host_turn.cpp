#include "memory/host_turn.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace rondo::detail {
namespace {

// The socket of this process that has the turn; -1 if none has. Whoever has the turn stores it, and
// a forked child reads it, alone; nothing is ordered by it.
std::atomic<int> socket_with_turn{-1};

}  // namespace

HostTurn::HostTurn(std::chrono::nanoseconds patience) {
  constexpr std::chrono::microseconds kBetweenLooks{100};
  const std::string name = fmt::format("rondo-reserving-{}", ::geteuid());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto give_up = std::chrono::steady_clock::now() + patience;
  while (socket.valid()) {
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), bytes) == 0) {
      socket_ = std::move(socket);
      socket_with_turn.store(socket_.get(), std::memory_order_relaxed);
      return;
    }
    if (errno != EADDRINUSE || std::chrono::steady_clock::now() > give_up) return;
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

HostTurn::~HostTurn() {
  if (has_it()) socket_with_turn.store(-1, std::memory_order_relaxed);
}

void HostTurn::leave_to_parent() {
  const FileDescriptor copy(socket_with_turn.exchange(-1, std::memory_order_relaxed));
}

}  // namespace rondo::detail
