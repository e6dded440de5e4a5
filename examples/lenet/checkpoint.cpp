#include "checkpoint.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "examples/layers/replace_file.hpp"

namespace lenet {
namespace {

nlohmann::json::binary_t bytes_of(const std::vector<float>& values) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(float));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return {std::move(bytes)};
}

std::vector<float> floats_of(const nlohmann::json& json) {
  const std::vector<std::uint8_t>& bytes = json.get_binary();
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

void require_same(const nlohmann::json& kept, const char* name, const nlohmann::json& here) {
  if (kept.at(name) == here) return;
  throw std::runtime_error(
      fmt::format("its {} is {}, and this training's {}", name, kept.at(name).dump(), here.dump()));
}

std::uint64_t hash_of(const nlohmann::json& kept) {
  const std::vector<std::uint8_t> bytes = nlohmann::json::to_cbor(kept);
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace

std::optional<TrainingState> read_checkpoint(const std::string& file, const Identity& identity,
                                             int epochs) {
  if (file.empty() || !std::filesystem::exists(file)) return {};
  try {
    std::ifstream in(file, std::ios::binary);
    nlohmann::json kept = nlohmann::json::from_cbor(in);
    const auto hash = kept.at("hash").get<std::uint64_t>();
    kept.erase("hash");
    if (hash_of(kept) != hash) throw std::runtime_error("it is damaged");
    require_same(kept, "model", identity.model);
    require_same(kept, "seed", identity.seed);
    require_same(kept, "batch_size", identity.batch_size);
    require_same(kept, "batch_norm", identity.batch_norm);
    require_same(kept, "strategy", identity.strategy);
    const int done = kept.at("epochs").get<int>();
    if (done >= epochs) {
      throw std::runtime_error(
          fmt::format("it has {} epochs already, and --epochs asks for {}", done, epochs));
    }
    return TrainingState{done, kept.at("steps").get<std::size_t>(),
                         kept.at("samples").get<std::size_t>(), floats_of(kept.at("parameters")),
                         floats_of(kept.at("statistics"))};
  } catch (const std::exception& error) {
    throw std::runtime_error(
        fmt::format("--checkpoint '{}': training cannot go on from this file ({}); remove it to "
                    "begin anew",
                    file, error.what()));
  }
}

void write_checkpoint(const std::string& file, const Identity& identity,
                      const TrainingState& state) {
  nlohmann::json kept = {{"model", identity.model},
                         {"seed", identity.seed},
                         {"batch_size", identity.batch_size},
                         {"samples", state.samples},
                         {"batch_norm", identity.batch_norm},
                         {"strategy", identity.strategy},
                         {"epochs", state.epochs},
                         {"steps", state.steps},
                         {"parameters", nlohmann::json::binary(bytes_of(state.parameters))},
                         {"statistics", nlohmann::json::binary(bytes_of(state.statistics))}};
  kept["hash"] = hash_of(kept);
  std::string bytes;
  nlohmann::json::to_cbor(kept, bytes);
  replace_file(file, bytes);
}

}  // namespace lenet
