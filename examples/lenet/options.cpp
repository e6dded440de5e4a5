#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <rondo/options.hpp>
#include <rondo/version.hpp>
#include <sstream>
#include <system_error>

#include "examples/layers/replace_file.hpp"
#include "task.hpp"
#include "tools/launch/launch.hpp"
#include "tools/launch/numbers.hpp"
#include "tools/launch/options.hpp"

namespace lenet {
namespace {

// "epochs=10", "lr=0.1", ...: each option as it was named, and else its default. The folder of the
// data is left out, since ranks may find the same data in different folders.
std::string settings_of(const CLI::App& app) {
  std::istringstream all(app.config_to_str(true));
  std::string settings;
  for (std::string line; std::getline(all, line);) {
    if (!line.starts_with("data=")) settings += line + "\n";
  }
  return settings;
}

// Where a folder cannot be read, only the names count.
std::filesystem::path real_path(const std::string& file) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(file, error);
  return error ? std::filesystem::path(file).lexically_normal() : real;
}

bool same_file(const std::string& a, const std::string& b) { return real_path(a) == real_path(b); }

void add_summing_options(CLI::App& app, Options& options) {
  app.add_option("--algo", options.algo,
                 "how gradients are summed; mpi: on the CPU, under mpirun; none: one rank alone")
      ->check(CLI::IsMember({"ring", "naive", "mpi", "none"}))
      ->capture_default_str();
  app.add_option("--device", options.device, "cpu, or cuda: GPUs, one for each rank in turn")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option(
         "--bucket-kib", options.bucket_kib,
         "cap of a bucket of gradients; 0: by the measured speed of the ranks' links and the "
         "model's size [16 for LeNet]")
      ->check(CLI::Range(std::size_t{0}, std::size_t{1} << 20U));
  app.add_flag_callback(
      "--overlap", [&options] { options.overlap = true; },
      "sums gradients during backprop [where that pays: between hosts, on GPUs, and where the "
      "ranks leave a core free]");
  app.add_flag_callback(
         "--no-overlap", [&options] { options.overlap = false; }, "sums gradients after backprop")
      ->excludes("--overlap");
}

void add_file_options(CLI::App& app, Options& options) {
  app.add_option("--data", options.data,
                 fmt::format("folder of the four IDX files of images [{}]", kFashionMnist));
  app.add_option("--trace", options.trace,
                 "file for a timeline of all ranks, which ui.perfetto.dev opens; some MB an epoch");
  app.add_option("--checkpoint", options.checkpoint,
                 "file for the training's state after each epoch; where there is one, training "
                 "goes on from it");
  app.add_option("--history", options.history, "file to write the run's history to (JSON)");
}

}  // namespace

void add_options(CLI::App& app, Options& options) {
  app.add_option("--epochs", options.epochs, "passes over the training set")
      ->check(rondo::launch::whole_from(1))
      ->capture_default_str();
  app.add_option("--batch-size", options.training.learner.batch_size,
                 "samples of a minibatch, shared between the ranks")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 20U))
      ->capture_default_str();
  app.add_option("--lr", options.training.learner.rate, "learning rate")
      ->check(rondo::launch::finite_between(0, 1e6))
      ->capture_default_str();
  // CLI11 itself would turn numbers below 0 or above 2⁶⁴ into other ones.
  app.add_option("--seed", options.training.seed, "seed of parameters and shuffles")
      ->check(rondo::launch::finite_between(0, 1e15))
      ->capture_default_str();
  add_summing_options(app, options);
  add_file_options(app, options);
  app.add_option("--threads", options.threads, "compute threads of a rank, on the CPU")
      ->check(rondo::launch::whole_from(1))
      ->capture_default_str();
  rondo::launch::add_rank_options(app, options.ranks, options.processes, 64);
  app.set_version_flag("--version", RONDO_VERSION);
}

std::optional<int> parse(CLI::App& app, int argc, char** argv, Options& options,
                         const std::function<void()>& check) {
  try {
    app.parse(argc, argv);
    check();
    options.settings = settings_of(app);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  return std::nullopt;
}

std::optional<int> read_command_line(int argc, char** argv, Options& options) {
  CLI::App app(
      "Trains LeNet on Fashion-MNIST; start it with mpirun or rondo-launch -n RANKS, or with "
      "--ranks or --processes.",
      "rondo-lenet");
  add_options(app, options);
  return parse(app, argc, argv, options, [&] { refuse_contradictions(options); });
}

void refuse_one_file_for_two(std::vector<std::pair<const char*, std::string>> files) {
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

void refuse_contradictions(const Options& options) {
  refuse_one_file_for_two({{"--history", options.history},
                           {"--checkpoint", options.checkpoint},
                           {"--trace", options.trace}});
  const bool without_mpi = !rondo::launch::starts_mpi(options.ranks, options.processes);
  if (options.algo == "mpi" && (without_mpi || options.device == "cuda")) {
    throw CLI::ValidationError("--algo", "mpi works only with --device cpu and under mpirun");
  }
  if (options.device == "cuda" && !options.trace.empty()) {
    throw CLI::ValidationError("--device", "must be cpu with --trace");
  }
  if (!by_reducer(options) &&
      (!options.trace.empty() || options.bucket_kib || options.overlap.value_or(false))) {
    throw CLI::ValidationError("--trace, --bucket-kib and --overlap",
                               "are for gradients that Rondo sums in buckets: not for --algo mpi "
                               "or none, nor for --no-overlap on GPUs");
  }
}

bool by_reducer(const Options& options) {
  return rondo::algorithm_named(options.algo) &&
         (options.device == "cpu" || options.overlap.value_or(true));
}

std::optional<rondo::GradientOptions> gradient_options(const Options& options, const Task& task) {
  const std::optional<rondo::Algorithm> algorithm = rondo::algorithm_named(options.algo);
  if (!algorithm) return std::nullopt;
  rondo::GradientOptions gradients;
  gradients.average = rondo::Average::sum;  // the learner divides by the samples of the minibatch
  // Fixed where it is not named, and not measured, so that more than two ranks compute the same
  // bits on every machine.
  gradients.bucket_bytes = options.bucket_kib.value_or(task.bucket_kib) << 10U;
  gradients.overlap = options.overlap.value_or(true);
  gradients.algorithm = algorithm;
  gradients.trace = !options.trace.empty();
  return gradients;
}

}  // namespace lenet
