#include "bootstrap/card_listener.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bootstrap/network.hpp"
#include "bootstrap/proof.hpp"
#include "topology/machine.hpp"

namespace rondo::detail {
namespace {

std::string random_token() {
  std::string token;
  for (const std::uint8_t byte : fresh_nonce()) token += fmt::format("{:02x}", byte);
  return token;
}

}  // namespace

CardOfListener listen_with_card(const std::string& interface) {
  std::vector<Address> places = own_addresses(interface, 0);
  CardOfListener made{{machine_boot_id(), random_token(), {}, 0}, {}};
  Card& card = made.card;
  if (interface.empty()) {
    made.listeners.push_back(listen_at(every_address(0)));
    card.port = address_of(made.listeners[0]).port();
  }
  for (Address& place : places) {
    place.set_port(card.port);
    if (!interface.empty()) {
      made.listeners.push_back(listen_at(place));
      place = address_of(made.listeners.back());
      card.port = place.port();  // the same for the next address
    }
    const std::string text = place.text();
    card.addresses.push_back(text.substr(0, text.rfind(':')));
  }
  return made;
}

Attempt connect_by(const Card& card, Clock::time_point deadline) {
  const bool same_machine = card.boot == machine_boot_id();
  std::vector<Address> addresses;  // those of this machine first
  std::string why_not = "it names no address of another host";
  for (const bool loopback : {true, false}) {
    if (loopback && !same_machine) continue;
    for (const std::string& text : card.addresses) {
      std::string host = text;
      std::erase_if(host, [](char letter) { return letter == '[' || letter == ']'; });
      const Resolved resolved = HostLookup(host).ask(card.port, deadline);
      if (resolved.addresses.empty()) why_not = resolved.why_not;
      for (const Address& address : resolved.addresses) {
        if (address.is_loopback() == loopback) addresses.push_back(address);
      }
    }
  }
  if (addresses.empty()) return {FileDescriptor(), std::move(why_not)};
  return connect_to_any(addresses, deadline);
}

}  // namespace rondo::detail
