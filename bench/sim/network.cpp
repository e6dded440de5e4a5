#include "bench/sim/network.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "tools/launch/write_file.hpp"

namespace rondo::sim {
namespace {

constexpr std::pair<const char*, double Network::*> kFields[] = {
    {"link_bytes_per_us", &Network::link_bytes_per_us},
    {"latency_us", &Network::latency_us},
    {"burst_bytes", &Network::burst_bytes},
    {"jitter_us", &Network::jitter_us},
    {"slice_us", &Network::slice_us},
    {"reduce_bytes_per_us", &Network::reduce_bytes_per_us},
    {"copy_bytes_per_us", &Network::copy_bytes_per_us},
};

// Throws std::runtime_error, unless there is each field, and nothing else.
void check_fields(const nlohmann::json& values) {
  std::string names = "ranks_per_host";
  for (const auto& [name, member] : kFields) names += fmt::format(", {}", name);
  const auto refuse = [&](const std::string& what) {
    throw std::runtime_error(fmt::format("{}; a network has {}", what, names));
  };
  if (!values.is_object()) refuse("this is no JSON object");
  const auto check = [&](const char* name) {
    if (!values.contains(name)) refuse(fmt::format("'{}' is missing", name));
  };
  check("ranks_per_host");
  const nlohmann::json& ranks = values["ranks_per_host"];
  if (!ranks.is_number_unsigned() || ranks.get<std::uint64_t>() > (1U << 20U)) {
    refuse("ranks_per_host must be a whole number up to 1048576");
  }
  for (const auto& [name, member] : kFields) check(name);
  if (values.size() != std::size(kFields) + 1) refuse("there are other fields");
}

}  // namespace

Network read_network(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error(fmt::format("'{}' cannot be read", file));
  Network network;
  try {
    const nlohmann::json values = nlohmann::json::parse(in);
    check_fields(values);
    for (const auto& [name, member] : kFields) values.at(name).get_to(network.*member);
    values.at("ranks_per_host").get_to(network.ranks_per_host);
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format("'{}': {}", file, error.what()));
  }
  for (const auto& [name, member] : kFields) {
    if (!(network.*member >= 0) || !std::isfinite(network.*member)) {
      throw std::runtime_error(
          fmt::format("'{}': {} must not be negative or infinite", file, name));
    }
  }
  const bool moves = network.link_bytes_per_us > 0 && network.reduce_bytes_per_us > 0 &&
                     network.copy_bytes_per_us > 0 && network.ranks_per_host > 0;
  if (!moves) {
    throw std::runtime_error(fmt::format("'{}': rates and ranks_per_host must be above 0", file));
  }
  return network;
}

nlohmann::json json_of(const Network& network) {
  nlohmann::json values;
  for (const auto& [name, member] : kFields) values[name] = network.*member;
  values["ranks_per_host"] = network.ranks_per_host;
  return values;
}

void write_network(const std::string& file, const Network& network) {
  launch::write_file(file, json_of(network).dump(1) + "\n");
}

}  // namespace rondo::sim
