#include "results.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <rondo/topology.hpp>
#include <rondo/version.hpp>

#include "examples/layers/replace_file.hpp"

namespace lenet::systems {
namespace {

nlohmann::json json_of(const rondo::overlap::Measured& report) {
  const auto of_spread = [](const rondo::overlap::Spread& spread) {
    return nlohmann::json{{"median", spread.median}, {"low", spread.low}, {"high", spread.high}};
  };
  nlohmann::json modes;
  for (int mode = 0; mode < rondo::overlap::kModes; ++mode) {
    const rondo::overlap::Measured::OfMode& its =
        report.of(static_cast<rondo::overlap::Mode>(mode));
    modes[rondo::overlap::kModeNames[mode]] = {{"step_us", of_spread(its.step)},
                                               {"backward_us", of_spread(its.backward)},
                                               {"exchanged_us", of_spread(its.exchanged)}};
  }
  return {{"modes", modes},
          {"communication_us", report.figures.communication_us},
          {"hidden", report.figures.hidden},
          {"most_hidden", report.most_hidden},
          {"buckets", report.buckets},
          {"bucket_bytes", report.bucket_bytes}};
}

nlohmann::json json_of(const std::optional<std::uint64_t>& number) {
  return number ? nlohmann::json(*number) : nlohmann::json();
}

nlohmann::json json_of(const Staleness& staleness) {
  return {
      {"updates", staleness.updates}, {"mean", staleness.mean()}, {"greatest", staleness.greatest}};
}

}  // namespace

void print(const EpochExtras& extras) {
  double part_bytes = 0;
  for (const double bytes : extras.part_bytes) part_bytes += bytes;
  if (part_bytes > 0) {
    fmt::print("{:<22}{:.1f}\n", "MB to other parts",
               part_bytes / static_cast<double>(extras.part_bytes.size()) / 1e6);
  }
  std::string shares;
  if (!extras.shares.empty()) {
    for (const double share : extras.shares.back()) shares += fmt::format(" {:.3f}", share);
  }
  if (!shares.empty()) fmt::print("{:<22}{}\n", "shares of the ranks", shares.substr(1));
}

void print(const Staleness& staleness) {
  fmt::print("{:<22}{} (of all servers)\n", "updates", staleness.number());
  fmt::print("{:<22}{:.2f} (mean), {} (greatest)\n", "staleness", staleness.mean(),
             staleness.greatest);
  std::string bins;
  for (std::size_t i = 0; i < Staleness::kBins; ++i) {
    if (staleness.updates[i] == 0) continue;
    bins += fmt::format("{}{}: {}", bins.empty() ? "" : ", ", i, staleness.updates[i]);
  }
  fmt::print("{:<22}{}\n", "updates by staleness", bins);
}

void write_history(const SystemOptions& options, const Run& run, const EpochExtras& extras,
                   const std::optional<Staleness>& staleness) {
  nlohmann::json history = history_of(options, run);
  nlohmann::json& config = history["config"];
  config.update({{"model", options.model},
                 {"batch_norm", options.batch_norm},
                 {"train_samples", options.train_samples},
                 {"test_samples", options.test_samples},
                 {"strategy", options.strategy},
                 {"servers", options.strategy == "all-reduce" ? 0 : options.servers},
                 {"max_staleness", json_of(options.most_staleness)},
                 {"slow", options.slow},
                 {"split", options.split},
                 {"parts", options.split.empty() ? 1 : options.parts},
                 {"micro_batches", options.split == "layers" ? options.micro_batches : 1},
                 {"wire", options.wire},
                 {"accumulate", options.training.learner.passes},
                 {"shares", options.shares},
                 {"warmup", options.separate.warmup_epochs},
                 {"local_steps", options.separate.local_steps},
                 {"resync", options.separate.resync_steps},
                 {"evaluate", options.evaluate}});
  if (options.separate.local_steps > 0) config["overlap"] = false;
  for (std::size_t i = 0; i < run.results.size(); ++i) {
    history["epochs"][i]["part_bytes"] = extras.part_bytes[i];
    history["epochs"][i]["shares"] = extras.shares[i];
  }
  if (staleness) history["staleness"] = json_of(*staleness);
  replace_file(options.history, history.dump(2) + "\n");
}

void write_exchange_time(const SystemOptions& options, int ranks, const ExchangeTime& measured) {
  const nlohmann::json all = {
      {"exchange_us",
       {{"median", measured.median_us}, {"low", measured.low_us}, {"high", measured.high_us}}},
      {"bytes", measured.bytes},
      {"config",
       {{"ranks", ranks},
        {"strategy", options.strategy},
        {"servers", options.strategy == "all-reduce" ? 0 : options.servers},
        {"algo", options.algo},
        {"exchanges", options.measured_exchanges},
        {"version", RONDO_VERSION}}}};
  replace_file(options.json, all.dump(1) + "\n");
}

void write_overlap(const SystemOptions& options, int ranks,
                   const rondo::overlap::Measured& report) {
  nlohmann::json all = json_of(report);
  all["machine"] = {{"cores", rondo::this_machine().cores}};
  all["config"] = {{"ranks", ranks},
                   {"batch_size", options.training.learner.batch_size},
                   {"steps", options.measured_steps},
                   {"version", RONDO_VERSION}};
  replace_file(options.json, all.dump(1) + "\n");
}

}  // namespace lenet::systems
