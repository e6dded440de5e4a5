#include "bootstrap/addresses.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <future>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/keep_loaded.hpp"
#include "base/threads.hpp"
#include "bootstrap/sockets.hpp"

namespace rondo::detail {
namespace {

Address from_system(const sockaddr* address, socklen_t bytes) {
  Address result;
  std::memcpy(&result.storage, address, bytes);
  result.bytes = bytes;
  return result;
}

sockaddr_in as_ipv4(const Address& address) {
  sockaddr_in four{};
  std::memcpy(&four, &address.storage, sizeof(four));
  return four;
}

sockaddr_in6 as_ipv6(const Address& address) {
  sockaddr_in6 six{};
  std::memcpy(&six, &address.storage, sizeof(six));
  return six;
}

bool is_ipv6(const Address& address) { return address.storage.ss_family == AF_INET6; }

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

}  // namespace

bool Address::is_loopback() const {
  if (!is_ipv6(*this)) return (ntohl(as_ipv4(*this).sin_addr.s_addr) >> 24U) == 127;
  const in6_addr six = as_ipv6(*this).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&six);
}

std::uint16_t Address::port() const {
  return ntohs(is_ipv6(*this) ? as_ipv6(*this).sin6_port : as_ipv4(*this).sin_port);
}

void Address::set_port(std::uint16_t port) {
  if (is_ipv6(*this)) {
    sockaddr_in6 six = as_ipv6(*this);
    six.sin6_port = htons(port);
    std::memcpy(&storage, &six, sizeof(six));
  } else {
    sockaddr_in four = as_ipv4(*this);
    four.sin_port = htons(port);
    std::memcpy(&storage, &four, sizeof(four));
  }
}

std::string Address::text() const {
  std::array<char, NI_MAXHOST> host{};
  if (::getnameinfo(get(), bytes, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return "an unknown address";
  }
  return is_ipv6(*this) ? fmt::format("[{}]:{}", host.data(), port())
                        : fmt::format("{}:{}", host.data(), port());
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
  if (asked_.wait_until(deadline) != std::future_status::ready) {
    return {{}, fmt::format("'{}': no name server answers", host_)};
  }
  resolved = asked_.get();
  for (Address& address : resolved.addresses) address.set_port(port);
  return resolved;
}

bool is_numeric(const std::string& host) {
  return !resolve(host, 0, AI_NUMERICHOST).addresses.empty();
}

Address every_address(std::uint16_t port) {
  Address address;
  const FileDescriptor probe(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  address.storage.ss_family = probe.valid() ? AF_INET6 : AF_INET;
  address.bytes = probe.valid() ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  address.set_port(port);
  return address;
}

std::vector<Address> own_addresses(const std::string& interface, std::uint16_t port) {
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) {
    throw TransportError(
        fmt::format("cannot list this machine's network interfaces: {}", std::strerror(errno)));
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(found, &::freeifaddrs);
  std::vector<Address> addresses;
  std::string names;
  for (const ifaddrs* one = found; one != nullptr; one = one->ifa_next) {
    const bool up = (one->ifa_flags & IFF_UP) != 0 && one->ifa_addr != nullptr;
    if (!up) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", one->ifa_name);
    if (!interface.empty() && interface != one->ifa_name) continue;
    Address address =
        from_system(one->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    const in6_addr six = as_ipv6(address).sin6_addr;
    if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six)) continue;
    address.set_port(port);
    addresses.push_back(address);
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
  // Without the port; IPv4 as IPv6 writes it.
  const auto host_of = [](const Address& one) {
    if (is_ipv6(one)) return as_ipv6(one).sin6_addr;
    in6_addr mapped{};
    mapped.s6_addr[10] = mapped.s6_addr[11] = 0xff;
    const in_addr four = as_ipv4(one).sin_addr;
    std::memcpy(&mapped.s6_addr[12], &four, sizeof(four));
    return mapped;
  };
  const in6_addr wanted = host_of(address);
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(found, &::freeifaddrs);
  for (const ifaddrs* one = found; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const Address its =
        from_system(one->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    const in6_addr host = host_of(its);
    if (!IN6_ARE_ADDR_EQUAL(&host, &wanted)) continue;
    const std::string_view name = one->ifa_name;
    return std::string(name.substr(0, name.find(':')));  // without the label of an address
  }
  return {};
}

FileDescriptor listen_at(const Address& address) {
  FileDescriptor socket = make_tcp_socket(address.storage.ss_family);
  switch_on(socket, SOL_SOCKET, SO_REUSEADDR);
  switch_on(socket, IPPROTO_TCP, TCP_NODELAY);  // accepted connections inherit both
  switch_on(socket, SOL_SOCKET, SO_KEEPALIVE);
  if (is_ipv6(address)) {
    const int off = 0;
    static_cast<void>(::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)));
  }
  if (::bind(socket.get(), address.get(), address.bytes) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    const int code = errno;
    const char* cure = code == EADDRINUSE ? "; another program uses it, so choose another port"
                       : code == EADDRNOTAVAIL
                           ? "; rank 0 must run on the host that has this address"
                           : "";
    throw TransportError(
        fmt::format("rank 0 cannot listen at {}: {}{}", address.text(), std::strerror(code), cure));
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
  address.bytes = sizeof(address.storage);
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.bytes);
  return address;
}

Address peer_address_of(const FileDescriptor& socket) {
  Address address;
  address.bytes = sizeof(address.storage);
  ::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.bytes);
  return address;
}

}  // namespace rondo::detail
