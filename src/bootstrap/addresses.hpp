// Addresses in IP networks, and TCP sockets at them.
#pragma once

#include <cstdint>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "base/file_descriptor.hpp"
#include "bootstrap/asio.hpp"

namespace rondo::detail {

using Address = asio::ip::tcp::endpoint;

// "10.0.0.1:29500" or "[::1]:29500".
std::string text_of(const Address& address);

// The addresses of a host, or why there are none.
struct Resolved {
  std::vector<Address> addresses = {};
  std::string why_not = {};
};

// Asks for the addresses of a host's name, or of a text such as "10.0.0.1" or "fe80::1%eth0". Name
// servers may take longer than one call's deadline: then the next call waits for the same answer.
// (Asio's own resolver lets its owner wait for them, however long they take.)
class HostLookup {
 public:
  explicit HostLookup(std::string host) : host_(std::move(host)) {}
  Resolved ask(std::uint16_t port, Clock::time_point deadline);

 private:
  std::string host_;
  std::future<Resolved> asked_;  // of the system, which has not answered yet
};

bool is_numeric(const std::string& host);
// All addresses of IPv4, or of both IPv6 and IPv4 where the machine has IPv6.
Address every_address(std::uint16_t port);
// The addresses of this machine's interfaces that are up; of one interface if it is named.
// Addresses that are valid only together with an interface's name are left out. Throws UsageError
// if there is no such interface, or if it has none; TransportError.
std::vector<Address> own_addresses(const std::string& interface, std::uint16_t port);

// Returns the network interface of this machine that has this address, whatever the port; empty if
// none has, or the loopback interface, or if the system does not list interfaces.
std::string interface_with(const Address& address);

// Makes a TCP socket for addresses of this kind that does not block, sends at once, and notices
// when the other host is gone. Returns none, with errno, if this machine has no network for such
// addresses. Throws TransportError.
FileDescriptor make_tcp_socket(const Address& address);
// Listens at this address, as rank 0 does when ranks join. Throws TransportError with the reason,
// and with the cure where the address is in use or not this machine's.
FileDescriptor listen_at(const Address& address);
// Listens at all of them where that is possible; if it is possible at none, throws as listen_at()
// does.
std::vector<FileDescriptor> listen_at_any(const std::vector<Address>& addresses);
// The address that a TCP socket is bound to, and that of its other end.
Address address_of(const FileDescriptor& socket);
Address peer_address_of(const FileDescriptor& socket);

}  // namespace rondo::detail
