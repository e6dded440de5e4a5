#include "bootstrap/stranger.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <span>

namespace rondo::detail {
namespace {

// A rank introduces itself as soon as it has connected, and says who it is as soon as it is asked.
// Nobody is sent away before the first of these times, and nobody who speaks as a rank does before
// the second.
constexpr std::chrono::milliseconds kForAWord{50};
constexpr std::chrono::seconds kForAnAnswer{3};

}  // namespace

bool Stranger::may_be_sent_away(Clock::time_point now) const {
  const auto time = handshake_.introduced() ? std::chrono::milliseconds(kForAnAnswer) : kForAWord;
  return now - came_ > time;
}

std::string Stranger::read_and_reply() {
  while (handshake_.hello() == nullptr) {
    const std::span<std::byte> room = handshake_.room();
    const ssize_t received = ::recv(socket_.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0 && errno == EAGAIN) return {};
    if (received <= 0) return "it left";
    const std::optional<Reply> reply = handshake_.took(static_cast<std::size_t>(received));
    if (reply) say(*reply);
    if (!handshake_.objection().empty()) return handshake_.objection();
  }
  return {};
}

// Replies fit the buffer of a new socket. If the stranger has left, the next read from
// its socket finds that.
void Stranger::say(const Reply& reply) const {
  static_cast<void>(::send(socket_.get(), &reply, sizeof(reply), MSG_NOSIGNAL | MSG_DONTWAIT));
}

}  // namespace rondo::detail
