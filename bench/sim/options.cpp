#include "bench/sim/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <rondo/version.hpp>

#include "bench/overlap/files.hpp"
#include "tools/launch/numbers.hpp"

namespace rondo::sim {
namespace {

constexpr double kMost = 1e12;
const CLI::Validator kRate = launch::finite_between(1e-6, kMost);
const CLI::Validator kAmount = launch::finite_between(0, kMost);
const CLI::Range kKib(std::size_t{1}, std::size_t{1} << 30U);

// As they are named.
struct Named {
  std::string network;
  std::optional<double> link_mbit;
  std::optional<double> latency_us;
  std::optional<double> jitter_us;
  std::optional<double> burst_kib;
  std::optional<int> ranks_per_host;
  int servers = 0;
  std::vector<std::string> strategies = {"ring", "hierarchical", "halving_doubling", "server"};
  std::vector<std::size_t> kib = {64, 1024, 16384};
  std::string model;
  std::string trace;
  double compute_ms = 100;
  double forward_ms = 0;
  std::vector<std::size_t> bucket_kib = {64, 256, 1024, 4096, 16384, 65536};
};

void add_network_options(CLI::App& app, Named& named, Options& options) {
  app.add_option("--measure", options.measured,
                 "file to write the network to, which is measured between the ranks of two hosts; "
                 "start it with mpirun or rondo-launch");
  app.add_option("--network", named.network, "file that --measure wrote");
  app.add_option("--link-mbit", named.link_mbit, "rate of a host's link, each way")->check(kRate);
  app.add_option("--latency-us", named.latency_us, "of a message without bytes, one way")
      ->check(kAmount);
  app.add_option("--burst-kib", named.burst_kib,
                 "which a link carries at once after a pause, if it is shaped by a token bucket")
      ->check(kAmount);
  app.add_option("--jitter-us", named.jitter_us, "by which messages are late, on average")
      ->check(kAmount);
  app.add_option("--ranks-per-host", named.ranks_per_host, "ranks that share a link")
      ->check(launch::whole_from(1));
  app.add_option("--servers", named.servers,
                 "parameter servers of the strategy 'server'; 0: one beside each rank")
      ->check(launch::whole_from(0))
      ->capture_default_str();
}

void add_job_options(CLI::App& app, Named& named, Options& options) {
  CLI::Option* model = app.add_option(
      "--model", named.model,
      "answers for a training step: resnet50, or a JSON file as rondo-overlap reads");
  app.add_option("--trace", named.trace,
                 "the same from a timeline, as rondo-lenet --trace writes; best with small buckets")
      ->excludes(model);
  app.add_option("--compute-ms", named.compute_ms, "how long backprop takes")
      ->check(kRate)
      ->needs(model)
      ->capture_default_str();
  app.add_option("--forward-ms", named.forward_ms, "what a step takes before backprop")
      ->check(kAmount)
      ->needs(model)
      ->capture_default_str();
  app.add_option("--compute-spread", options.question.compute_spread,
                 "standard deviation of a rank's computing time, as a part of it")
      ->check(launch::finite_between(0, 1))
      ->capture_default_str();
  app.add_option("--bucket-kib", named.bucket_kib, "caps of buckets, of which the best is found")
      ->delimiter(',')
      ->check(kKib)
      ->capture_default_str();
  app.add_option("--steps-per-epoch", options.question.steps_per_epoch,
                 "answers for an epoch, too, if not 0")
      ->check(kAmount)
      ->capture_default_str();
}

// Throws CLI::ValidationError for an option that the answer would not depend on.
void refuse_useless(const CLI::App& app, const Named& named) {
  const bool job = app.count("--model") + app.count("--trace") > 0;
  for (const char* name : {"--compute-spread", "--bucket-kib", "--steps-per-epoch"}) {
    if (!job && app.count(name) > 0) {
      throw CLI::ValidationError(name, "is for --model or --trace");
    }
  }
  if (job && app.count("--kib") > 0) {
    throw CLI::ValidationError("--kib", "is for calls, and not for --model or --trace");
  }
  const bool served = std::find(named.strategies.begin(), named.strategies.end(), "server") !=
                      named.strategies.end();
  if (app.count("--servers") > 0 && !served) {
    throw CLI::ValidationError("--servers", "is for the strategy 'server'");
  }
  if (app.count("--measure") == 0) return;
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() > 0 && option->get_name() != "--measure") {
      throw CLI::ValidationError(option->get_name(),
                                 "does not go with --measure, which simulates nothing");
    }
  }
}

Network network_of(const Named& named) {
  constexpr double kBytesPerUsOfMbit = 0.125;
  Network network = named.network.empty() ? Network{} : read_network(named.network);
  if (named.link_mbit) network.link_bytes_per_us = *named.link_mbit * kBytesPerUsOfMbit;
  network.latency_us = named.latency_us.value_or(network.latency_us);
  network.jitter_us = named.jitter_us.value_or(network.jitter_us);
  constexpr double kBytesPerKib = 1024;
  if (named.burst_kib) network.burst_bytes = *named.burst_kib * kBytesPerKib;
  network.ranks_per_host = named.ranks_per_host.value_or(network.ranks_per_host);
  network.servers = named.servers;
  return network;
}

void take(const Named& named, Question& question) {
  question.network = network_of(named);
  for (const std::string& strategy : named.strategies) {
    question.strategies.push_back(strategy_named(strategy));
  }
  for (const std::size_t kib : named.kib) question.bytes.push_back(kib << 10U);
  for (const std::size_t kib : named.bucket_kib) question.bucket_bytes.push_back(kib << 10U);
  constexpr double kUsOfMs = 1e3;
  if (!named.trace.empty()) question.job = read_trace(named.trace);
  if (named.model.empty()) return;
  question.job =
      job_of(named.model == "resnet50" ? overlap::resnet50() : overlap::read_model(named.model),
             named.compute_ms * kUsOfMs, named.forward_ms * kUsOfMs);
}

}  // namespace

std::optional<int> read_command_line(int argc, char** argv, Options& options) {
  CLI::App app(
      "Tells how long all_reduces and training steps would take on any number of ranks, by "
      "simulating the library's schedules on a model of hosts and links.",
      "rondo-sim");
  Named named;
  options.question.ranks = {2, 8, 32};
  add_network_options(app, named, options);
  app.add_option("--ranks", options.question.ranks, "numbers of ranks")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--strategies", named.strategies,
                 "ring, hierarchical, halving_doubling, recursive_doubling, naive, server")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--kib", named.kib, "sizes of calls")
      ->delimiter(',')
      ->check(kKib)
      ->capture_default_str();
  add_job_options(app, named, options);
  app.add_option(
         "--calls", options.question.calls,
         "that ranks make one after the other, as benchmarks do; the second half of them is "
         "timed (servers are always timed alone)")
      ->check(CLI::Range(1, 1000))
      ->excludes("--model")
      ->excludes("--trace")
      ->capture_default_str();
  app.add_option("--runs", options.question.runs, "with other random numbers")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--json", options.json, "file for the answers");
  app.set_version_flag("--version", RONDO_VERSION);
  try {
    app.parse(argc, argv);
    refuse_useless(app, named);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  take(named, options.question);
  return std::nullopt;
}

}  // namespace rondo::sim
