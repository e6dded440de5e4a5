#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <numeric>
#include <rondo/options.hpp>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "contradictions.hpp"
#include "tasks.hpp"
#include "tools/launch/numbers.hpp"

namespace lenet::systems {
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
    if (read.ec != std::errc() || read.ptr != end || !(share >= 0) || text.ends_with(',')) {
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

// CLI11 itself would turn numbers below 0 or above 2⁶⁴ into other ones.
const CLI::Validator kCount = rondo::launch::finite_between(0, 1e15);

void add_task_options(CLI::App& app, SystemOptions& options) {
  app.get_option("--bucket-kib")
      ->description(
          "cap of a bucket of gradients; 0: by the measured speed of the ranks' links and the "
          "model's size [16 for lenet and spirals, 1024 for resnet18]");
  app.add_option("--model", options.model,
                 "what is trained: LeNet, or ResNet-18 without pooling after its first layer, on "
                 "Fashion-MNIST; or a small network on points of three spirals, without files")
      ->check(CLI::IsMember(task_names()))
      ->capture_default_str();
  app.add_option("--batch-norm", options.batch_norm,
                 "over whose samples ResNet-18 normalises: each rank's own, or those of all ranks")
      ->check(CLI::IsMember({"rank", "all"}))
      ->capture_default_str();
  app.add_option("--train-samples", options.train_samples,
                 "trains on so many samples, the first; 0: all")
      ->check(kCount)
      ->capture_default_str();
  app.add_option("--test-samples", options.test_samples,
                 "tests on so many samples, the first; 0: all")
      ->check(kCount)
      ->capture_default_str();
}

void add_strategy_options(CLI::App& app, SystemOptions& options) {
  app.add_option("--strategy", options.strategy,
                 "all-reduce: ranks sum their gradients; server: the last ranks are parameter "
                 "servers, which the others push gradients to and pull parameters from; "
                 "server-async: the servers apply each worker's gradients when they arrive")
      ->check(CLI::IsMember({"all-reduce", "server", "server-async"}))
      ->capture_default_str();
  app.add_option("--servers", options.servers,
                 "how many ranks are parameter servers, each with a part of the parameters")
      ->check(rondo::launch::whole_from(1))
      ->capture_default_str();
  app.add_option("--max-staleness", options.most_staleness,
                 "server-async: at most so many updates come between a worker's pull and its push")
      ->check(kCount);
  app.add_option("--slow", options.slow,
                 "RANK:FACTOR: that rank takes so many times as long for gradients, by sleeping");
}

void add_split_options(CLI::App& app, SystemOptions& options) {
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

void add_worker_options(CLI::App& app, SystemOptions& options) {
  app.add_option("--wire", options.wire, "type in which gradients are sent")
      ->check(CLI::IsMember({"exact", "bf16", "f16"}))
      ->capture_default_str();
  app.add_option(
         "--accumulate", options.training.learner.passes,
         "passes over parts of a minibatch, whose gradients are added up before they are sent")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--shares", options.shares,
                 "how minibatches are dealt to the ranks: equal; numbers in proportion (3,1); or "
                 "auto: by how fast each rank computed in the epoch before")
      ->capture_default_str();
  app.add_option("--warmup", options.separate.warmup_epochs,
                 "epochs in which the learning rate grows to --lr")
      ->check(rondo::launch::finite_between(0, 1e6))
      ->capture_default_str();
  app.add_option(
         "--local-steps", options.separate.local_steps,
         "no gradients are summed: after so many steps of each rank alone, and at the end of "
         "an epoch, all take the average of their parameters; 0: gradients are summed in "
         "every step")
      ->check(kCount)
      ->capture_default_str();
  app.add_option("--resync", options.separate.resync_steps,
                 "after so many steps all take rank 0's parameters; 0: never")
      ->check(kCount)
      ->capture_default_str();
  app.add_option("--evaluate", options.evaluate,
                 "after an epoch all ranks classify a share of the test set each, or rank-0 all of "
                 "it alone")
      ->check(CLI::IsMember({"all", "rank-0"}))
      ->capture_default_str();
}

void add_measuring_options(CLI::App& app, SystemOptions& options) {
  app.add_option("--measure-exchange", options.measured_exchanges,
                 "instead of training, measures this number of exchanges of gradients")
      ->check(rondo::launch::whole_from(1))
      ->excludes("--checkpoint");
  app.add_option("--exchange-kib", options.exchanged_kib,
                 "size of these gradients; 0: that of the model")
      ->check(CLI::Range(std::size_t{0}, std::size_t{1} << 20U))
      ->needs("--measure-exchange")
      ->capture_default_str();
  app.add_option("--measure-overlap", options.measured_steps,
                 "instead of training, measures this number of steps in each of three modes: "
                 "without communication, with communication after backprop, and with it during "
                 "backprop")
      ->check(rondo::launch::whole_from(1))
      ->excludes("--trace")
      ->excludes("--checkpoint")
      ->excludes("--measure-exchange")
      ->excludes("--overlap")
      ->excludes("--no-overlap");
  app.add_option("--json", options.json,
                 "file for what --measure-overlap or --measure-exchange measures");
  for (const char* measuring : {"--measure-overlap", "--measure-exchange"}) {
    for (const char* training : {"--epochs", "--lr", "--evaluate", "--history"}) {
      app.get_option(measuring)->excludes(app.get_option(training));
    }
  }
}

}  // namespace

std::optional<int> read_command_line(int argc, char** argv, SystemOptions& options) {
  CLI::App app(
      "Trains LeNet or ResNet-18 on Fashion-MNIST, or another task, in other ways than "
      "rondo-lenet, or measures; start it with mpirun or rondo-launch -n RANKS, or with --ranks or "
      "--processes.",
      "rondo-systems");
  add_options(app, options);
  add_task_options(app, options);
  add_strategy_options(app, options);
  add_split_options(app, options);
  add_worker_options(app, options);
  add_measuring_options(app, options);
  return parse(app, argc, argv, options, [&] {
    LearnerOptions& learner = options.training.learner;
    learner.shares = shares_named(options.shares);
    learner.alone = options.separate.local_steps > 0;
    options.separate.rate = learner.rate;
    if (!options.slow.empty()) slow_named(options.slow);
    if (options.evaluate == "rank-0") options.training.evaluators = 1;
    if (!options.json.empty() && options.measured_steps + options.measured_exchanges == 0) {
      throw CLI::ValidationError("--json", "needs --measure-overlap or --measure-exchange");
    }
    refuse_contradictions(options);
  });
}

std::optional<rondo::GradientOptions> gradient_options(const SystemOptions& options,
                                                       const Task& task) {
  if (options.strategy != "all-reduce") return std::nullopt;
  std::optional<rondo::GradientOptions> gradients =
      lenet::gradient_options(static_cast<const Options&>(options), task);
  if (gradients && options.wire == "bf16") gradients->wire = rondo::WireType::bf16;
  if (gradients && options.wire == "f16") gradients->wire = rondo::WireType::f16;
  return gradients;
}

// Only a reducer narrows gradients.
std::size_t element_bytes(const SystemOptions& options) {
  return options.wire != "exact" && by_reducer(options) ? 2 : sizeof(float);
}

LearnerOptions learner_options(const SystemOptions& options, int rank, int ranks) {
  LearnerOptions learner = options.training.learner;
  if (options.slow.empty()) return learner;
  const Slow slow = slow_named(options.slow);
  if (slow.rank >= ranks) {
    throw std::runtime_error(fmt::format("--slow {}: ranks that train are numbered from 0 to {}",
                                         options.slow, ranks - 1));
  }
  if (slow.rank == rank) learner.slowdown = slow.factor;
  return learner;
}

}  // namespace lenet::systems
