#include "bootstrap/contact_listener.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bootstrap/addresses.hpp"
#include "bootstrap/connect_to_any.hpp"
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

ListeningContact listen_with_contact(const std::string& interface) {
  std::vector<Address> places = own_addresses(interface, 0);
  ListeningContact made{{machine_boot_id(), random_token(), {}, 0}, {}};
  Contact& contact = made.contact;
  if (interface.empty()) {
    made.listeners.push_back(listen_at(every_address(0)));
    contact.port = address_of(made.listeners[0]).port();
  }
  for (Address& place : places) {
    place.set_port(contact.port);
    if (!interface.empty()) {
      made.listeners.push_back(listen_at(place));
      place = address_of(made.listeners.back());
      contact.port = place.port();  // the same for the next address
    }
    const std::string text = place.text();
    contact.addresses.push_back(text.substr(0, text.rfind(':')));
  }
  return made;
}

Attempt connect_by(const Contact& contact, Clock::time_point deadline) {
  const bool same_machine = contact.boot == machine_boot_id();
  std::vector<Address> addresses;  // those of this machine first
  std::string why_not = "it names no address of another host";
  for (const bool loopback : {true, false}) {
    if (loopback && !same_machine) continue;
    for (const std::string& text : contact.addresses) {
      std::string host = text;
      std::erase_if(host, [](char letter) { return letter == '[' || letter == ']'; });
      const Resolved resolved = HostLookup(host).ask(contact.port, deadline);
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
