#include "bootstrap/contact.hpp"

#include <nlohmann/json.hpp>
#include <rondo/errors.hpp>

namespace rondo::detail {

std::string to_text(const Contact& contact) {
  const nlohmann::json json = {{"rondo", 1},
                               {"boot", contact.boot},
                               {"token", contact.token},
                               {"addresses", contact.addresses},
                               {"port", contact.port}};
  return json.dump(1) + "\n";
}

Contact parse_contact(const std::string& text) {
  Contact contact;
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    contact.boot = json.at("boot").get<std::string>();
    contact.token = json.at("token").get<std::string>();
    contact.addresses = json.at("addresses").get<std::vector<std::string>>();
    contact.port = json.at("port").get<std::uint16_t>();
  } catch (const nlohmann::json::exception& error) {
    throw UsageError(std::string("it is incomplete, or not a file of rank 0: ") + error.what());
  }
  if (contact.token.empty()) throw UsageError("it is incomplete: the token is missing");
  return contact;
}

}  // namespace rondo::detail
