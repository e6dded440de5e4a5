#include "files.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <rondo/options.hpp>
#include <rondo/topology.hpp>
#include <rondo/version.hpp>

#include "examples/layers/replace_file.hpp"

namespace lenet {
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

void write_history(const Options& options, const Run& run) {
  nlohmann::json epochs = nlohmann::json::array();
  for (std::size_t i = 0; i < run.results.size(); ++i) {
    epochs.push_back({{"epoch", static_cast<std::size_t>(run.epochs_before) + i + 1},
                      {"seconds", run.results[i].seconds},
                      {"train_loss", run.results[i].train_loss},
                      {"sent_bytes", run.results[i].sent_bytes},
                      {"part_bytes", run.results[i].part_bytes},
                      {"shares", run.results[i].shares},
                      {"test_accuracy", run.results[i].test_accuracy},
                      {"evaluation_seconds", run.results[i].evaluation_seconds}});
  }
  nlohmann::json history = {
      {"config",
       {{"ranks", run.ranks},
        {"device", options.device},
        {"epochs", options.epochs},
        {"batch_size", options.training.batch_size},
        {"lr", options.training.rate},
        {"seed", options.training.seed},
        {"model", options.model},
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
        {"algo", options.algo},
        {"bucket_bytes", run.bucket_bytes},
        {"overlap", rondo::algorithm_named(options.algo) && options.overlap.value_or(true) &&
                        options.training.local_steps == 0},
        {"wire", options.wire},
        {"accumulate", options.training.passes},
        {"shares", options.shares},
        {"warmup", options.training.warmup_epochs},
        {"local_steps", options.training.local_steps},
        {"resync", options.training.resync_steps},
        {"evaluate", options.evaluate},
        {"threads", options.threads},
        {"version", RONDO_VERSION}}},
      {"epochs", epochs},
      {"param_hash", fmt::format("{:016x}", run.hash)}};
  if (run.staleness) history["staleness"] = json_of(*run.staleness);
  replace_file(options.history, history.dump(2) + "\n");
}

void write_exchange_time(const Options& options, int ranks, const ExchangeTime& measured) {
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

void write_overlap(const Options& options, int ranks, const rondo::overlap::Measured& report) {
  nlohmann::json all = json_of(report);
  all["machine"] = {{"cores", rondo::this_machine().cores}};
  all["config"] = {{"ranks", ranks},
                   {"batch_size", options.training.batch_size},
                   {"steps", options.measured_steps},
                   {"version", RONDO_VERSION}};
  replace_file(options.json, all.dump(1) + "\n");
}

}  // namespace lenet
