#include "bootstrap/addresses.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/giving_up.hpp"
#include "base/keep_loaded.hpp"
#include "base/threads.hpp"

namespace rondo::detail {
namespace {

using asio::ip::address_v6;

Address from_system(const sockaddr* address, std::size_t bytes) {
  Address result;
  std::memcpy(result.data(), address, std::min(bytes, result.capacity()));
  return result;
}

Resolved resolve(const std::string& host, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) {
    return {{},
            fmt::format("'{}': {}", host,
                        code == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(code))};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  Resolved resolved;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    resolved.addresses.push_back(from_system(one->ai_addr, one->ai_addrlen));
  }
  return resolved;
}

// An address of one of this machine's interfaces.
struct Own {
  std::string interface;
  bool is_loopback = false;
  Address address;
};

// Throws TransportError.
std::vector<Own> list_own() {
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) {
    throw TransportError(
        fmt::format("cannot list this machine's network interfaces: {}", std::strerror(errno)));
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(found, &::freeifaddrs);
  std::vector<Own> all;
  for (const ifaddrs* one = found; one != nullptr; one = one->ifa_next) {
    if ((one->ifa_flags & IFF_UP) == 0 || one->ifa_addr == nullptr) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const std::size_t bytes = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    all.push_back(
        {one->ifa_name, (one->ifa_flags & IFF_LOOPBACK) != 0, from_system(one->ifa_addr, bytes)});
  }
  return all;
}

// IPv4 as IPv6 writes it.
address_v6 host_of(const Address& address) {
  const asio::ip::address host = address.address();
  return host.is_v6() ? address_v6(host.to_v6().to_bytes())
                      : asio::ip::make_address_v6(asio::ip::v4_mapped, host.to_v4());
}

void switch_on(const FileDescriptor& socket, int level, int option) {
  const int on = 1;
  static_cast<void>(::setsockopt(socket.get(), level, option, &on, sizeof(on)));
}

}  // namespace

std::string text_of(const Address& address) {
  std::ostringstream text;
  text << address;
  return text.str();
}

Resolved HostLookup::ask(std::uint16_t port, Clock::time_point deadline) {
  Resolved resolved = resolve(host_, port, AI_NUMERICHOST);
  if (!resolved.addresses.empty()) return resolved;
  if (!asked_.valid()) {
    // A thread asks, which ends by itself when nobody waits any more; that may be later than a
    // plugin is unloaded.
    std::packaged_task<Resolved()> task([host = host_] { return resolve(host, 0, 0); });
    asked_ = task.get_future();
    keep_loaded();
    start_thread(fmt::format("looks for '{}'", host_), std::move(task)).detach();
  }
  std::future_status status = std::future_status::timeout;
  do {
    status = asked_.wait_until(next_look(deadline));
  } while (status != std::future_status::ready && !is_over(deadline));
  if (status != std::future_status::ready) {
    return {{}, fmt::format("'{}': no name server answers", host_)};
  }
  resolved = asked_.get();
  for (Address& address : resolved.addresses) address.port(port);
  return resolved;
}

bool is_numeric(const std::string& host) {
  return !resolve(host, 0, AI_NUMERICHOST).addresses.empty();
}

Address every_address(std::uint16_t port) {
  const FileDescriptor probe(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return {probe.valid() ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), port};
}

std::vector<Address> own_addresses(const std::string& interface, std::uint16_t port) {
  std::vector<Address> addresses;
  std::string names;
  for (const Own& own : list_own()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", own.interface);
    if (!interface.empty() && interface != own.interface) continue;
    const asio::ip::address host = own.address.address();
    if (host.is_v6() && host.to_v6().is_link_local()) continue;
    addresses.emplace_back(host, port);
  }
  if (addresses.empty()) {
    throw UsageError(fmt::format(
        "the network interface '{}' (CommunicatorOptions::network, RONDO_INTERFACE) has no address "
        "on this host; those that have: {}",
        interface, names.empty() ? "none" : names));
  }
  return addresses;
}

std::string interface_with(const Address& address) {
  try {
    for (const Own& own : list_own()) {
      if (own.is_loopback || host_of(own.address) != host_of(address)) continue;
      return own.interface.substr(0, own.interface.find(':'));  // without the label of an address
    }
  } catch (const TransportError&) {
    // Only a hint is missing.
  }
  return {};
}

FileDescriptor make_tcp_socket(const Address& address) {
  FileDescriptor socket(
      ::socket(address.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid() && errno == EAFNOSUPPORT) return socket;
  if (!socket.valid()) {
    throw TransportError(
        fmt::format("cannot make a TCP socket: {}; allow more open files (ulimit -n), if that is "
                    "the reason",
                    std::strerror(errno)));
  }
  switch_on(socket, IPPROTO_TCP, TCP_NODELAY);
  switch_on(socket, SOL_SOCKET, SO_KEEPALIVE);
  return socket;
}

// The listening socket has the options of a connection: those that it accepts get the same ones.
FileDescriptor listen_at(const Address& address) {
  FileDescriptor socket = make_tcp_socket(address);
  if (socket.valid()) switch_on(socket, SOL_SOCKET, SO_REUSEADDR);
  if (socket.valid() && address.address().is_v6()) {
    const int off = 0;
    static_cast<void>(::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)));
  }
  if (!socket.valid() ||
      ::bind(socket.get(), address.data(), static_cast<socklen_t>(address.size())) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    const int code = errno;
    const char* cure = code == EADDRINUSE ? "; another program uses it, so choose another port"
                       : code == EADDRNOTAVAIL
                           ? "; rank 0 must run on the host that has this address"
                           : "";
    throw TransportError(fmt::format("rank 0 cannot listen at {}: {}{}", text_of(address),
                                     std::strerror(code), cure));
  }
  return socket;
}

std::vector<FileDescriptor> listen_at_any(const std::vector<Address>& addresses) {
  std::vector<FileDescriptor> listeners;
  std::exception_ptr failure;
  for (const Address& address : addresses) {
    try {
      listeners.push_back(listen_at(address));
    } catch (const TransportError&) {
      failure = std::current_exception();
    }
  }
  if (listeners.empty() && failure) std::rethrow_exception(failure);
  return listeners;
}

Address address_of(const FileDescriptor& socket) {
  Address address;
  auto bytes = static_cast<socklen_t>(address.capacity());
  ::getsockname(socket.get(), address.data(), &bytes);
  return address;
}

Address peer_address_of(const FileDescriptor& socket) {
  Address address;
  auto bytes = static_cast<socklen_t>(address.capacity());
  ::getpeername(socket.get(), address.data(), &bytes);
  return address;
}

}  // namespace rondo::detail
