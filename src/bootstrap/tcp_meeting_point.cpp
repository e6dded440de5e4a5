#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "bootstrap/meeting_point.hpp"

namespace rondo::detail {
namespace {

class TcpPlace {
 public:
  TcpPlace(const TcpUrl& url, std::vector<std::uint16_t> ports, const NetworkOptions& network)
      : lookup_(url.host),
        url_(url),
        ports_(std::move(ports)),
        secret_(network.secret.value_or("")),
        interface_(network.interface.value_or("")),
        any_network_(!secret_.empty() || network.without_secret) {}

  Listening listen(Clock::time_point deadline);
  Target find(Clock::time_point deadline, std::uint16_t last_port);
  [[nodiscard]] std::string name() const {
    return url_.host.find(':') == std::string::npos
               ? fmt::format("tcp://{}:{}", url_.host, url_.port)
               : fmt::format("tcp://[{}]:{}", url_.host, url_.port);
  }

 private:
  Listening listen_at_port(std::vector<Address> addresses, std::uint16_t port) const;
  // Without a secret anybody who reaches rank 0 could be taken for a rank.
  void require_loopback(const std::vector<Address>& addresses) const;

  HostLookup lookup_;
  TcpUrl url_;
  std::vector<std::uint16_t> ports_;  // one, or those that the rank 0 of this run may have
  std::string secret_;
  std::string interface_;
  bool any_network_;
};

void TcpPlace::require_loopback(const std::vector<Address>& addresses) const {
  if (any_network_) return;
  for (const Address& address : addresses) {
    if (address.address().is_loopback()) continue;
    throw UsageError(fmt::format(
        "from_store: {} is {}, which other hosts can reach: give all ranks the same secret "
        "(RONDO_SECRET, CommunicatorOptions::network), or set network.without_secret where you "
        "trust everybody on that network",
        name(), text_of(address)));
  }
}

Listening TcpPlace::listen(Clock::time_point deadline) {
  const Resolved resolved = lookup_.ask(url_.port, deadline);
  if (resolved.addresses.empty()) {
    throw TransportError(fmt::format("rank 0 cannot listen at {}: {}", name(), resolved.why_not));
  }
  require_loopback(resolved.addresses);
  std::exception_ptr failure;
  for (const std::uint16_t port : ports_) {
    try {
      return listen_at_port(resolved.addresses, port);
    } catch (const TransportError&) {
      failure = std::current_exception();
    }
  }
  std::rethrow_exception(failure);
}

// A number says exactly where to listen. A name may stand for another address on its own host than
// on the others (Debian gives a host's own name to 127.0.1.1), so there rank 0 listens at all
// addresses, or at those of the interface.
Listening TcpPlace::listen_at_port(std::vector<Address> addresses, std::uint16_t port) const {
  Listening listening{.secret = secret_};
  if (any_network_ && !is_numeric(url_.host)) {
    addresses = {every_address(port)};
    try {
      if (!interface_.empty()) addresses = own_addresses(interface_, port);
    } catch (const UsageError&) {
      listening.refusal = std::current_exception();
    }
  }
  for (Address& address : addresses) address.port(port);
  listening.listeners = listen_at_any(addresses);
  return listening;
}

// Begins behind the last port, where another run or program answered.
Target TcpPlace::find(Clock::time_point deadline, std::uint16_t last_port) {
  const Resolved resolved = lookup_.ask(url_.port, deadline);
  require_loopback(resolved.addresses);
  // A name may be unknown until rank 0's host has started.
  Target target{.secret = secret_, .why_not = resolved.why_not};
  std::vector<std::uint16_t> ports = ports_;
  const auto last = std::find(ports.begin(), ports.end(), last_port);
  if (last != ports.end()) std::rotate(ports.begin(), last + 1, ports.end());
  for (const std::uint16_t port : ports) {
    for (Address address : resolved.addresses) {
      address.port(port);
      target.addresses.push_back(address);
    }
  }
  return target;
}

}  // namespace

MeetingPoint meet_at_address(const TcpUrl& url, std::vector<std::uint16_t> ports, std::string run,
                             const NetworkOptions& network) {
  if (ports.empty()) ports = {url.port};
  const std::size_t several = ports.size();
  const auto place = std::make_shared<TcpPlace>(url, std::move(ports), network);
  return {.name = place->name(),
          .caller = "from_store",
          .run = std::move(run),
          // The launcher has named no address, so the ports are computed from the run. At one of
          // several ports there may be other runs, or programs of others.
          .is_of_one_run = several > 1,
          .may_be_stale = several > 1,
          .looks_for_another = static_cast<int>(several),
          .listen = [place](Clock::time_point deadline) { return place->listen(deadline); },
          .find = [place](Clock::time_point deadline,
                          std::uint16_t last_port) { return place->find(deadline, last_port); }};
}

}  // namespace rondo::detail
