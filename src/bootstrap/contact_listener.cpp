#include "bootstrap/contact_listener.hpp"

#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "bootstrap/addresses.hpp"
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
    place.port(contact.port);
    if (!interface.empty()) {
      made.listeners.push_back(listen_at(place));
      place = address_of(made.listeners.back());
      contact.port = place.port();  // the same for the next address
    }
    const std::string text = text_of(place);
    contact.addresses.push_back(text.substr(0, text.rfind(':')));
  }
  return made;
}

// A contact has numbers alone, for which nobody asks a name server.
Target target_of(const Contact& contact) {
  const bool same_machine = contact.boot == machine_boot_id();
  Target target{.why_not = "rank 0's contact names no address that leads to it from here"};
  for (const bool loopback : {true, false}) {
    if (loopback && !same_machine) continue;
    for (const std::string& text : contact.addresses) {
      std::string host = text;
      std::erase_if(host, [](char letter) { return letter == '[' || letter == ']'; });
      std::error_code no_number;
      const Address address(asio::ip::make_address(host, no_number), contact.port);
      if (no_number)
        target.why_not = fmt::format("rank 0's contact: '{}': {}", host, no_number.message());
      const bool fits = !no_number && address.address().is_loopback() == loopback;
      if (fits) target.addresses.push_back(address);
    }
  }
  return target;
}

}  // namespace rondo::detail
