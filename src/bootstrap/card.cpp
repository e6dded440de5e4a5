#include "bootstrap/card.hpp"

#include <nlohmann/json.hpp>
#include <rondo/errors.hpp>

namespace rondo::detail {

std::string to_text(const Card& card) {
  const nlohmann::json json = {{"rondo", 1},
                               {"boot", card.boot},
                               {"token", card.token},
                               {"addresses", card.addresses},
                               {"port", card.port}};
  return json.dump(1) + "\n";
}

Card parse_card(const std::string& text) {
  Card card;
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    card.boot = json.at("boot").get<std::string>();
    card.token = json.at("token").get<std::string>();
    card.addresses = json.at("addresses").get<std::vector<std::string>>();
    card.port = json.at("port").get<std::uint16_t>();
  } catch (const nlohmann::json::exception& error) {
    throw UsageError(std::string("it is not a whole file of rank 0: ") + error.what());
  }
  if (card.token.empty()) throw UsageError("it is not a whole file of rank 0: its token is empty");
  return card;
}

}  // namespace rondo::detail
