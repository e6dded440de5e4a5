#include "adapters/nccl/unique_id.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include <rondo/errors.hpp>

#include "adapters/nccl/errors.hpp"
#include "adapters/nccl/functions.hpp"
#include "adapters/random_hex.hpp"

namespace rondo::nccl_programs {
namespace {

constexpr const char* kFirstWord = "rondo";

class Socket {
 public:
  explicit Socket(int type) : number_(::socket(AF_INET, type | SOCK_CLOEXEC, 0)) {
    if (number_ < 0)
      throw std::system_error(errno, std::generic_category(), "cannot make a socket");
  }
  Socket(Socket&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  ~Socket() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] std::optional<sockaddr_in> address() const {
    sockaddr_in address{};
    socklen_t length = sizeof(address);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (::getsockname(number_, any, &length) != 0) return std::nullopt;
    return address;
  }

 private:
  int number_;
};

struct Interface {
  std::string name;
  in_addr address;
};

// Those that are up and have an IPv4 address, without the loopback interface.
std::vector<Interface> interfaces() {
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot list network interfaces");
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(found, &::freeifaddrs);
  std::vector<Interface> interfaces;
  for (const ifaddrs* one = all.get(); one != nullptr; one = one->ifa_next) {
    const bool usable = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (!usable || one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    interfaces.push_back(
        {one->ifa_name, reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr});
  }
  return interfaces;
}

// The address from which this host reaches others by its default route, if it has one. Nothing is
// sent: the system only looks up the route to an address of RFC 5737, which no host has.
std::optional<in_addr> address_of_default_route() {
  const Socket socket(SOCK_DGRAM);
  sockaddr_in elsewhere{};
  elsewhere.sin_family = AF_INET;
  elsewhere.sin_port = htons(9);
  ::inet_pton(AF_INET, "192.0.2.1", &elsewhere.sin_addr);
  const auto* const any = reinterpret_cast<const sockaddr*>(&elsewhere);
  if (::connect(socket.number(), any, sizeof(elsewhere)) != 0) return std::nullopt;
  const std::optional<sockaddr_in> own = socket.address();
  return own ? std::optional(own->sin_addr) : std::nullopt;
}

// The user may name an interface; else the default route's, else any, else the loopback interface.
in_addr address_of_this_host() {
  const char* const interface = std::getenv("RONDO_INTERFACE");
  const std::string wanted = interface != nullptr ? interface : "";
  const std::vector<Interface> all = interfaces();
  if (!wanted.empty()) {
    for (const Interface& one : all) {
      if (one.name == wanted) return one.address;
    }
    throw UsageError("RONDO_INTERFACE names " + wanted +
                     ", which has no IPv4 address on this host, or is not up");
  }
  if (const auto address = address_of_default_route()) return *address;
  return all.empty() ? in_addr{htonl(INADDR_LOOPBACK)} : all.front().address;
}

// A bound socket that does not listen keeps its port for this process. Rank 0 can still listen
// there, because both sockets have SO_REUSEADDR.
struct KeptPorts {
  std::mutex mutex;
  std::map<std::string, Socket> sockets;  // by url
};
KeptPorts& kept_ports() {
  static KeptPorts ports;
  return ports;
}

std::string keep_port(in_addr host) {
  Socket socket(SOCK_STREAM);
  const int on = 1;
  ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in wanted{};
  wanted.sin_family = AF_INET;
  wanted.sin_addr = host;
  const auto* const any = reinterpret_cast<const sockaddr*>(&wanted);
  const bool bound = ::bind(socket.number(), any, sizeof(wanted)) == 0;
  const std::optional<sockaddr_in> address = socket.address();
  if (!bound || !address) {
    throw std::system_error(errno, std::generic_category(),
                            "no port is free for the ranks to meet");
  }
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &host, text.data(), text.size());
  std::string url =
      std::string("tcp://") + text.data() + ":" + std::to_string(ntohs(address->sin_port));
  const std::lock_guard lock(kept_ports().mutex);
  kept_ports().sockets.emplace(url, std::move(socket));
  return url;
}

}  // namespace

ncclUniqueId make_unique_id() {
  const std::string url = keep_port(address_of_this_host());
  ncclUniqueId id{};
  const int length = std::snprintf(id.internal, sizeof(id.internal), "%s %s %s", kFirstWord,
                                   url.c_str(), adapters::random_hex().c_str());
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof(id.internal)) {
    throw UsageError("the ranks' meeting place does not fit in an ncclUniqueId: " + url);
  }
  return id;
}

MeetingPlace parse(const ncclUniqueId& id) {
  const std::string text(id.internal, ::strnlen(id.internal, sizeof(id.internal)));
  const std::size_t first = text.find(' ');
  const std::size_t second = text.find(' ', first + 1);
  if (first == std::string::npos || second == std::string::npos ||
      text.substr(0, first) != kFirstWord) {
    throw InvalidArgument(
        "this ncclUniqueId is not of Rondo's ncclGetUniqueId; do all processes use one library?");
  }
  return {text.substr(first + 1, second - first - 1), text.substr(second + 1)};
}

void release_port(const MeetingPlace& place) {
  const std::lock_guard lock(kept_ports().mutex);
  kept_ports().sockets.erase(place.url);
}

}  // namespace rondo::nccl_programs

extern "C" ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  using namespace rondo::nccl_programs;
  return result_of([id] {
    if (id == nullptr) throw InvalidArgument("the place for the ncclUniqueId is null");
    *id = make_unique_id();
  });
}
