#include "bootstrap/tcp_meeting_point.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "bootstrap/addresses.hpp"
#include "bootstrap/connect_to_any.hpp"

namespace rondo::detail {
namespace {

class TcpMeetingPoint final : public MeetingPoint {
 public:
  TcpMeetingPoint(const TcpUrl& url, std::vector<std::uint16_t> ports, std::string run,
                  const NetworkOptions& network)
      : MeetingPoint(std::move(run)),
        url_(url),
        lookup_(url.host),
        ports_(std::move(ports)),
        secret_(network.secret.value_or("")),
        interface_(network.interface.value_or("")),
        any_network_(!secret_.empty() || network.without_secret),
        name_(url.host.find(':') == std::string::npos
                  ? fmt::format("tcp://{}:{}", url.host, url.port)
                  : fmt::format("tcp://[{}]:{}", url.host, url.port)) {
    if (ports_.empty()) ports_ = {url.port};
  }

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] const char* caller() const override { return "from_store"; }
  [[nodiscard]] std::string secret() const override { return secret_; }
  std::vector<FileDescriptor> listen(Clock::time_point deadline) override;
  [[nodiscard]] std::string stranger_name(const FileDescriptor& socket) const override {
    return peer_address_of(socket).text();
  }
  Attempt try_connect(int rank, Clock::time_point deadline) override;
  // The launcher has named no address, so the ports are computed from the run.
  [[nodiscard]] bool is_of_one_run() const override { return ports_.size() > 1; }
  // At one of several ports there may be other runs, or programs of others.
  [[nodiscard]] bool may_be_stale() const override { return ports_.size() > 1; }
  [[nodiscard]] int looks_for_another() const override { return static_cast<int>(ports_.size()); }

 private:
  std::vector<FileDescriptor> listen_at_port(std::vector<Address> addresses, std::uint16_t port);
  // Without a secret anybody who reaches rank 0 could be taken for a rank.
  void require_loopback(const std::vector<Address>& addresses) const;

  TcpUrl url_;
  HostLookup lookup_;
  std::vector<std::uint16_t> ports_;  // one, or those that the rank 0 of this run may have
  std::size_t next_ = 0;              // of them, that a rank tries next
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

// A number says exactly where to listen. A name may stand for another address on its own host than
// on the others (Debian gives a host's own name to 127.0.1.1), so there rank 0 listens at all
// addresses, or at those of the interface.
std::vector<FileDescriptor> TcpMeetingPoint::listen(Clock::time_point deadline) {
  const Resolved resolved = lookup_.ask(url_.port, deadline);
  const std::vector<Address>& addresses = resolved.addresses;
  if (addresses.empty()) {
    throw TransportError(fmt::format("rank 0 cannot listen at {}: {}", name_, resolved.why_not));
  }
  require_loopback(addresses);
  std::exception_ptr failure;
  for (const std::uint16_t port : ports_) {
    try {
      return listen_at_port(addresses, port);
    } catch (const TransportError&) {
      failure = std::current_exception();
    }
  }
  std::rethrow_exception(failure);
}

std::vector<FileDescriptor> TcpMeetingPoint::listen_at_port(std::vector<Address> addresses,
                                                            std::uint16_t port) {
  if (any_network_ && !is_numeric(url_.host)) {
    addresses = {every_address(port)};
    try {
      if (!interface_.empty()) addresses = own_addresses(interface_, port);
    } catch (const UsageError&) {
      refuse_all(std::current_exception());
    }
  }
  for (Address& address : addresses) address.set_port(port);
  return listen_at_any(addresses);
}

// Goes on to the next port where nobody takes in the connection, or where the last one was not with
// this run.
Attempt TcpMeetingPoint::try_connect(int /*rank*/, Clock::time_point deadline) {
  Resolved resolved = lookup_.ask(url_.port, deadline);
  std::vector<Address>& addresses = resolved.addresses;
  // A name may be unknown until rank 0's host has started.
  if (addresses.empty()) return {FileDescriptor(), std::move(resolved.why_not)};
  require_loopback(addresses);
  Attempt attempt;
  for (std::size_t tried = 0; tried < ports_.size() && !attempt.socket.valid(); ++tried) {
    for (Address& address : addresses) address.set_port(ports_[next_]);
    next_ = (next_ + 1) % ports_.size();
    attempt = connect_to_any(addresses, deadline);
  }
  return attempt;
}

}  // namespace

std::unique_ptr<MeetingPoint> meet_at_address(const TcpUrl& url, std::vector<std::uint16_t> ports,
                                              std::string run, const NetworkOptions& network) {
  return std::make_unique<TcpMeetingPoint>(url, std::move(ports), std::move(run), network);
}

}  // namespace rondo::detail
