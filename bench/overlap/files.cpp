#include "bench/overlap/files.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <rondo/topology.hpp>
#include <rondo/version.hpp>
#include <stdexcept>

#include "tools/launch/write_file.hpp"

namespace rondo::overlap {

Model read_model(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error(fmt::format("'{}' cannot be read", file));
  Model model;
  try {
    for (const nlohmann::json& tensor : nlohmann::json::parse(in)) {
      const auto count = tensor.at("count").get<std::size_t>();
      model.push_back({tensor.value("name", fmt::format("{}", model.size())), count,
                       tensor.value("work", static_cast<double>(count))});
    }
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(fmt::format("'{}': {}", file, error.what()));
  }
  if (model.empty()) throw std::runtime_error(fmt::format("'{}' has no tensors", file));
  return model;
}

void write_rows(const Options& options, const std::vector<Row>& rows, int ranks) {
  nlohmann::json all = {{"machine", {{"cores", this_machine().cores}}},
                        {"config",
                         {{"model", options.model},
                          {"compute_ms", options.compute_ms},
                          {"busy", options.busy},
                          {"steps", options.steps},
                          {"wire", options.wire},
                          {"ranks", ranks},
                          {"version", RONDO_VERSION}}},
                        {"rows", nlohmann::json::array()}};
  for (const Row& row : rows) {
    nlohmann::json times;
    for (int mode = 0; mode < kModes; ++mode) {
      const Spread& spread = row.measured.of(static_cast<Mode>(mode)).exchanged;
      times[kModeNames[mode]] = {
          {"median", spread.median}, {"low", spread.low}, {"high", spread.high}};
    }
    all["rows"].push_back({{"bucket_bytes", row.measured.bucket_bytes},
                           {"chosen", row.chosen},
                           {"buckets", row.measured.buckets},
                           {"time_us", times},
                           {"communication_us", row.measured.figures.communication_us},
                           {"hidden", row.measured.figures.hidden},
                           {"most_hidden", row.measured.most_hidden},
                           {"us_per_mark", row.mark_us}});
  }
  launch::write_file(options.json, all.dump(1) + "\n");
}

}  // namespace rondo::overlap
