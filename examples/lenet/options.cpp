#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <rondo/options.hpp>
#include <rondo/version.hpp>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "files.hpp"
#include "tools/launch/finite.hpp"
#include "tools/launch/launch.hpp"
#include "tools/launch/options.hpp"

namespace lenet {

namespace {

// Empty: equal shares, at least in the first epoch.
std::vector<double> shares_named(const std::string& text) {
  std::vector<double> shares;
  if (text == "equal" || text == "auto") return shares;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    double share = 0;
    const char* end = part.data() + part.size();
    const auto read = std::from_chars(part.data(), end, share);
    if (read.ec != std::errc() || read.ptr != end || !(share >= 0)) {
      throw CLI::ValidationError(
          "--shares", "'" + text + "' is not equal, auto or numbers from 0 on with commas");
    }
    shares.push_back(share);
  }
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (!(all > 0) || !std::isfinite(all)) {
    throw CLI::ValidationError("--shares", "the shares must have a sum above 0, and a finite one");
  }
  return shares;
}

struct Slow {
  int rank = 0;
  double factor = 1;
};

// Throws CLI::ValidationError.
Slow slow_named(const std::string& text) {
  Slow slow;
  char colon = 0;
  char rest = 0;
  std::istringstream parts(text);
  const bool read = static_cast<bool>(parts >> slow.rank >> colon >> slow.factor);
  constexpr double kMostFactor = 1e4;
  const bool fits = slow.factor >= 1 && slow.factor <= kMostFactor;
  if (!read || colon != ':' || parts >> rest || slow.rank < 0 || !fits) {
    throw CLI::ValidationError("--slow",
                               "'" + text + "' is not RANK:FACTOR with a factor from 1 to 10000");
  }
  return slow;
}

void add_task_options(CLI::App& app, Options& options) {
  app.add_option("--model", options.model,
                 "what is trained: LeNet, or ResNet-18 without pooling after its first layer")
      ->check(CLI::IsMember({"lenet", "resnet18"}))
      ->capture_default_str();
  app.add_option("--batch-norm", options.batch_norm,
                 "over whose samples ResNet-18 normalises: each rank's own, or those of all ranks")
      ->check(CLI::IsMember({"rank", "all"}))
      ->capture_default_str();
  app.add_option("--train-samples", options.train_samples,
                 "trains on so many samples, the first; 0: all")
      ->capture_default_str();
  app.add_option("--test-samples", options.test_samples,
                 "tests on so many samples, the first; 0: all")
      ->capture_default_str();
}

void add_strategy_options(CLI::App& app, Options& options) {
  app.add_option("--strategy", options.strategy,
                 "all-reduce: ranks sum their gradients; server: the last ranks are parameter "
                 "servers, which the others push gradients to and pull parameters from; "
                 "server-async: the servers apply each worker's gradients when they arrive")
      ->check(CLI::IsMember({"all-reduce", "server", "server-async"}))
      ->capture_default_str();
  app.add_option("--servers", options.servers,
                 "how many ranks are parameter servers, each with a part of the parameters")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--max-staleness", options.most_staleness,
                 "server-async: at most so many updates come between a worker's pull and its push");
  app.add_option("--slow", options.slow,
                 "RANK:FACTOR: that rank takes so many times as long for gradients, by sleeping");
  app.add_option("--measure-exchange", options.measured_exchanges,
                 "instead of training, measures this number of exchanges of gradients")
      ->check(CLI::PositiveNumber);
  app.add_option("--exchange-kib", options.exchanged_kib,
                 "size of these gradients; 0: that of the model")
      ->check(CLI::Range(std::size_t{0}, std::size_t{1} << 20U))
      ->needs("--measure-exchange")
      ->capture_default_str();
}

void add_split_options(CLI::App& app, Options& options) {
  CLI::Option* split =
      app.add_option("--split", options.split,
                     "ranks compute parts of one LeNet: columns or rows of the dense layers' "
                     "matrices, or layers (the convolutions, and the dense layers after them)")
          ->check(CLI::IsMember({"columns", "rows", "layers"}));
  app.add_option("--parts", options.parts,
                 "how many neighbouring ranks compute one model; the others take other samples")
      ->check(CLI::Range(2, 10))
      ->needs(split)
      ->capture_default_str();
  app.add_option("--micro-batches", options.micro_batches,
                 "layers: parts of a minibatch, which the ranks compute one after the other")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 20U))
      ->needs(split)
      ->capture_default_str();
}

void add_worker_options(CLI::App& app, Options& options) {
  app.add_option("--shares", options.shares,
                 "how minibatches are dealt to the ranks: equal; numbers in proportion (3,1); or "
                 "auto: by how fast each rank computed in the epoch before")
      ->capture_default_str();
  app.add_option("--warmup", options.training.warmup_epochs,
                 "epochs in which the learning rate grows to --lr")
      ->check(rondo::launch::finite_between(0, 1e6))
      ->capture_default_str();
  app.add_option(
         "--local-steps", options.training.local_steps,
         "no gradients are summed: after so many steps of each rank alone, and at the end of "
         "an epoch, all take the average of their parameters; 0: gradients are summed in "
         "every step")
      ->capture_default_str();
  app.add_option("--resync", options.training.resync_steps,
                 "after so many steps all take rank 0's parameters; 0: never")
      ->capture_default_str();
  app.add_option("--evaluate", options.evaluate,
                 "after an epoch all ranks classify a share of the test set each, or rank-0 all of "
                 "it alone")
      ->check(CLI::IsMember({"all", "rank-0"}))
      ->capture_default_str();
}

// Throws CLI::ValidationError.
void refuse_contradictions_of_strategy(const Options& options) {
  const TrainingOptions& training = options.training;
  const bool served = options.strategy != "all-reduce";
  if (!options.slow.empty()) slow_named(options.slow);
  if (served && (options.device == "cuda" || options.measured_steps > 0 || options.algo != "ring" ||
                 options.wire != "exact" || !options.trace.empty() || training.local_steps > 0 ||
                 training.resync_steps > 0 || training.measure_shares || options.overlap ||
                 options.bucket_kib)) {
    throw CLI::ValidationError("--strategy",
                               options.strategy +
                                   " is for training on the CPU without --algo, --wire, --trace, "
                                   "--bucket-kib, --overlap, --no-overlap, --measure-overlap, "
                                   "--local-steps, --resync and --shares auto");
  }
  if (!served && options.servers != 1) {
    throw CLI::ValidationError("--servers", "is for --strategy server and server-async");
  }
  const bool trains_otherwise =
      !training.shares.empty() || training.measure_shares || !options.slow.empty() ||
      !options.history.empty() || !options.checkpoint.empty() || training.warmup_epochs > 0 ||
      training.local_steps > 0 || training.resync_steps > 0 || training.passes > 1 ||
      options.wire != "exact" || options.overlap || options.bucket_kib || !options.trace.empty() ||
      options.evaluate != "all" || options.batch_norm != "rank";
  if (options.measured_exchanges > 0 && (options.algo == "none" || trains_otherwise)) {
    throw CLI::ValidationError("--measure-exchange",
                               "trains nothing: --algo none, --shares, --slow, --history, "
                               "--checkpoint, --warmup, --local-steps, --resync, --accumulate, "
                               "--wire, --overlap, --bucket-kib, --trace, --evaluate and "
                               "--batch-norm do not go with it");
  }
  if (options.most_staleness && options.strategy != "server-async") {
    throw CLI::ValidationError("--max-staleness", "is for --strategy server-async");
  }
  if (options.strategy == "server-async" &&
      (!training.shares.empty() || options.measured_exchanges > 0)) {
    throw CLI::ValidationError("--strategy",
                               "server-async has no shares, since whoever is free takes the next "
                               "part of a minibatch, and nothing for --measure-exchange");
  }
  if ((!options.slow.empty() || options.measured_exchanges > 0) &&
      (options.device == "cuda" || options.measured_steps > 0)) {
    throw CLI::ValidationError("--slow and --measure-exchange", "are for --device cpu");
  }
}

// Where a folder cannot be read, only the names count.
std::filesystem::path real_path(const std::string& file) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(file, error);
  return error ? std::filesystem::path(file).lexically_normal() : real;
}

bool same_file(const std::string& a, const std::string& b) { return real_path(a) == real_path(b); }

// Throws CLI::ValidationError.
void refuse_one_file_for_two(const Options& options) {
  std::vector<std::pair<const char*, std::string>> files = {{"--history", options.history},
                                                            {"--checkpoint", options.checkpoint},
                                                            {"--trace", options.trace},
                                                            {"--json", options.json}};
  std::erase_if(files, [](const auto& file) { return file.second.empty(); });
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool same = same_file(files[i].second, files[j].second) ||
                        same_file(files[i].second, beside(files[j].second)) ||
                        same_file(beside(files[i].second), files[j].second);
      if (!same) continue;
      throw CLI::ValidationError(
          files[i].first, fmt::format("is the file of {}, too: name another", files[j].first));
    }
  }
}

// Throws CLI::ValidationError.
void refuse_contradictions(const Options& options) {
  refuse_one_file_for_two(options);
  refuse_contradictions_of_strategy(options);
  if (options.batch_norm == "all" &&
      (options.model == "lenet" || options.strategy == "server-async")) {
    throw CLI::ValidationError("--batch-norm",
                               "all is for resnet18, and not for --strategy server-async, whose "
                               "ranks take no steps together");
  }
  const TrainingOptions& training = options.training;
  if (!options.split.empty() &&
      (options.model != "lenet" || options.device == "cuda" || options.strategy != "all-reduce" ||
       options.algo == "mpi" || options.measured_steps > 0 || options.measured_exchanges > 0 ||
       !options.trace.empty() || !options.checkpoint.empty() || !options.slow.empty() ||
       training.measure_shares)) {
    throw CLI::ValidationError("--split",
                               "is for LeNet on the CPU, and not for --strategy, --algo mpi, "
                               "--trace, --checkpoint, --slow, --shares auto, --measure-overlap "
                               "and --measure-exchange");
  }
  if (options.micro_batches != Options().micro_batches && options.split != "layers") {
    throw CLI::ValidationError("--micro-batches", "is for --split layers");
  }
  if (options.split == "layers" && options.parts != 2) {
    throw CLI::ValidationError("--parts", "must be 2 with --split layers");
  }
  const bool without_mpi = !rondo::launch::starts_mpi(options.ranks, options.processes);
  if (options.algo == "mpi" && (without_mpi || options.device == "cuda")) {
    throw CLI::ValidationError("--algo", "mpi works only with --device cpu and under mpirun");
  }
  if (options.device == "cuda" && (training.passes > 1 || !options.trace.empty())) {
    throw CLI::ValidationError("--device", "must be cpu with --accumulate or --trace");
  }
  if (options.measured_steps > 0 &&
      (options.device == "cuda" || !rondo::algorithm_named(options.algo))) {
    throw CLI::ValidationError("--measure-overlap", "is for Rondo's algorithms on the CPU");
  }
  // Only a reducer has a timeline and buckets, and narrows gradients.
  const bool by_reducer = rondo::algorithm_named(options.algo) &&
                          (options.device == "cpu" || options.overlap.value_or(true));
  if (!by_reducer && (!options.trace.empty() || options.wire != "exact" || options.bucket_kib ||
                      options.overlap.value_or(false))) {
    throw CLI::ValidationError(
        "--trace, --wire, --bucket-kib and --overlap",
        "are for gradients that Rondo sums in buckets: not for --algo mpi or "
        "none, nor for --no-overlap on GPUs");
  }
  const bool of_cpus = options.shares != "equal" || training.warmup_epochs > 0 ||
                       training.local_steps > 0 || training.resync_steps > 0;
  if (of_cpus && (options.device == "cuda" || options.measured_steps > 0)) {
    throw CLI::ValidationError("--shares, --warmup, --local-steps and --resync",
                               "are for training with --device cpu");
  }
  if (options.measured_steps > 0 && !options.history.empty()) {
    throw CLI::ValidationError("--history", "is for training; --json is for --measure-overlap");
  }
  if (training.local_steps > 0 &&
      (training.resync_steps > 0 || !options.trace.empty() || options.wire != "exact" ||
       options.algo != "ring" || options.overlap.value_or(false) || options.bucket_kib)) {
    throw CLI::ValidationError(
        "--local-steps",
        "sums no gradients: --resync, --trace, --wire, --algo, --overlap and "
        "--bucket-kib do not go with it");
  }
}

}  // namespace

double slowdown_of(const Options& options, int rank, int ranks) {
  if (options.slow.empty()) return 1;
  const Slow slow = slow_named(options.slow);
  if (slow.rank >= ranks) {
    throw std::runtime_error(fmt::format("--slow {}: ranks that train are numbered from 0 to {}",
                                         options.slow, ranks - 1));
  }
  return slow.rank == rank ? slow.factor : 1;
}

std::optional<int> read_command_line(int argc, char** argv, Options& options) {
  CLI::App app(
      "Trains LeNet or ResNet-18 on Fashion-MNIST; start it with mpirun or rondo-launch -n RANKS, "
      "or with "
      "--ranks or --processes.",
      "rondo-lenet");
  app.add_option("--epochs", options.epochs, "passes over the training set")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--batch-size", options.training.batch_size,
                 "samples of a minibatch, shared between the ranks")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 20U))
      ->capture_default_str();
  app.add_option("--lr", options.training.rate, "learning rate")
      ->check(rondo::launch::finite_between(0, 1e6))
      ->capture_default_str();
  app.add_option("--seed", options.training.seed, "seed of parameters and shuffles")
      ->capture_default_str();
  app.add_option("--algo", options.algo,
                 "how gradients are summed; mpi: on the CPU, under mpirun; none: one rank alone")
      ->check(CLI::IsMember({"ring", "naive", "mpi", "none"}))
      ->capture_default_str();
  app.add_option("--device", options.device, "cpu, or cuda: GPUs, one for each rank in turn")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--bucket-kib", options.bucket_kib,
                 "cap of a bucket of gradients; 0: chosen from the measured speed of the ranks' "
                 "links and the model's size. LeNet: 16, ResNet-18: 1024")
      ->check(CLI::Range(std::size_t{0}, std::size_t{1} << 20U));
  bool overlap = false;
  bool no_overlap = false;
  app.add_flag("--overlap", overlap,
               "sums gradients during backprop. Chosen where neither is named and it pays: between "
               "hosts, on GPUs, and where the ranks leave a core free");
  app.add_flag("--no-overlap", no_overlap, "sums gradients after backprop")->excludes("--overlap");
  app.add_option("--wire", options.wire, "type in which gradients are sent")
      ->check(CLI::IsMember({"exact", "bf16", "f16"}))
      ->capture_default_str();
  app.add_option(
         "--accumulate", options.training.passes,
         "passes over parts of a minibatch, whose gradients are added up before they are sent")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  add_task_options(app, options);
  add_strategy_options(app, options);
  add_split_options(app, options);
  add_worker_options(app, options);
  app.add_option("--trace", options.trace,
                 "file for a timeline of all ranks, which ui.perfetto.dev opens; some MB an epoch");
  app.add_option("--checkpoint", options.checkpoint,
                 "file for the training's state after each epoch; where there is one, training "
                 "goes on from it")
      ->excludes("--measure-exchange");
  app.add_option("--measure-overlap", options.measured_steps,
                 "instead of training, measures this number of steps in each of three modes: "
                 "without communication, with communication after backprop, and with it during "
                 "backprop")
      ->check(CLI::PositiveNumber)
      ->excludes("--trace")
      ->excludes("--checkpoint")
      ->excludes("--measure-exchange")
      ->excludes("--overlap")
      ->excludes("--no-overlap");
  app.add_option("--json", options.json,
                 "file for what --measure-overlap or --measure-exchange measures");
  app.add_option("--data", options.data, "folder of the four IDX files")->capture_default_str();
  app.add_option("--history", options.history, "file to write the run's history to (JSON)");
  app.add_option("--threads", options.threads, "compute threads of a rank, on the CPU")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  rondo::launch::add_rank_options(app, options.ranks, options.processes, 64);
  app.set_version_flag("--version", RONDO_VERSION);
  try {
    app.parse(argc, argv);
    if (overlap) options.overlap = true;
    if (no_overlap) options.overlap = false;
    options.training.shares = shares_named(options.shares);
    options.training.measure_shares = options.shares == "auto";
    options.training.rank_0_evaluates = options.evaluate == "rank-0";
    options.training.asynchronous = options.strategy == "server-async";
    if (!options.json.empty() && options.measured_steps + options.measured_exchanges == 0) {
      throw CLI::ValidationError("--json", "needs --measure-overlap or --measure-exchange");
    }
    // Only a reducer narrows gradients.
    const bool reducer = rondo::algorithm_named(options.algo) &&
                         (options.device == "cpu" || options.overlap.value_or(true));
    if (options.wire != "exact" && reducer) options.training.wire_bytes = 2;
    refuse_contradictions(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  return std::nullopt;
}

}  // namespace lenet
