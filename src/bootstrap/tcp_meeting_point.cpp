#include "bootstrap/tcp_meeting_point.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "bootstrap/network.hpp"

namespace rondo::detail {
namespace {

class TcpMeetingPoint final : public MeetingPoint {
 public:
  TcpMeetingPoint(const TcpUrl& url, const NetworkOptions& network)
      : url_(url),
        secret_(network.secret.value_or("")),
        interface_(network.interface.value_or("")),
        any_network_(!secret_.empty() || network.without_secret),
        name_(url.host.find(':') == std::string::npos
                  ? fmt::format("tcp://{}:{}", url.host, url.port)
                  : fmt::format("tcp://[{}]:{}", url.host, url.port)) {}

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] const char* caller() const override { return "from_store"; }
  [[nodiscard]] std::string secret() const override { return secret_; }
  std::vector<FileDescriptor> listen(Clock::time_point deadline) override;
  [[nodiscard]] std::string visitor_name(const FileDescriptor& socket) const override {
    return peer_address_of(socket).text();
  }
  Attempt try_connect(int rank, Clock::time_point deadline) override;
  [[nodiscard]] bool first_looks_for_another() const override { return true; }

 private:
  // Without a secret anybody who reaches rank 0 could be taken for a rank.
  void require_loopback(const std::vector<Address>& addresses) const;

  TcpUrl url_;
  std::string secret_;
  std::string interface_;
  bool any_network_;
  std::string name_;
};

void TcpMeetingPoint::require_loopback(const std::vector<Address>& addresses) const {
  if (any_network_) return;
  for (const Address& address : addresses) {
    if (address.is_loopback()) continue;
    throw UsageError(fmt::format(
        "from_store: {} is {}, which other hosts can reach: give all ranks the same secret "
        "(RONDO_SECRET, CommunicatorOptions::network), or set network.without_secret where you "
        "trust everybody on that network",
        name_, address.text()));
  }
}

// A number says exactly where to listen. A name may stand for another address on its own host than on the others (Debian
// gives a host's own name to 127.0.1.1), so there rank 0 listens at all addresses, or at those of the interface.
std::vector<FileDescriptor> TcpMeetingPoint::listen(Clock::time_point deadline) {
  std::string why_not;
  std::vector<Address> addresses = addresses_of(url_.host, url_.port, deadline, why_not);
  if (addresses.empty()) {
    throw TransportError(fmt::format("rank 0 cannot listen at {}: {}", name_, why_not));
  }
  require_loopback(addresses);
  if (any_network_ && !is_numeric(url_.host)) {
    addresses = interface_.empty() ? std::vector{every_address(url_.port)}
                                   : own_addresses(interface_, url_.port);
  }
  return listen_at_any(addresses);
}

Attempt TcpMeetingPoint::try_connect(int /*rank*/, Clock::time_point deadline) {
  std::string why_not;
  const std::vector<Address> addresses = addresses_of(url_.host, url_.port, deadline, why_not);
  // A name may be unknown until rank 0's host has started.
  if (addresses.empty()) return {FileDescriptor(), std::move(why_not)};
  require_loopback(addresses);
  return connect_to_any(addresses, deadline);
}

}  // namespace

std::unique_ptr<MeetingPoint> meet_at_address(const TcpUrl& url, const NetworkOptions& network) {
  return std::make_unique<TcpMeetingPoint>(url, network);
}

}  // namespace rondo::detail
