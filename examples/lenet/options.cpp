#include "options.hpp"

#include <CLI/CLI.hpp>
#include <rondo/options.hpp>
#include <rondo/version.hpp>

#include "tools/launch/launch.hpp"
#include "tools/launch/options.hpp"

namespace lenet {

std::optional<int> read_command_line(int argc, char** argv, Options& options) {
  CLI::App app(
      "Trains LeNet on Fashion-MNIST; start it with mpirun or rondo-launch -n RANKS, or with "
      "--ranks or --processes.",
      "rondo-lenet");
  app.add_option("--epochs", options.epochs, "passes over the training set")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--batch-size", options.training.batch_size,
                 "samples of a minibatch, shared between the ranks")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 20U))
      ->capture_default_str();
  app.add_option("--lr", options.training.rate, "learning rate")->capture_default_str();
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
                 "links and the model's size")
      ->capture_default_str();
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
  app.add_option("--trace", options.trace,
                 "file for a timeline of all ranks, which ui.perfetto.dev opens; some MB an epoch");
  app.add_option("--measure-overlap", options.measured_steps,
                 "instead of training, measures this number of steps in each of three modes: "
                 "without communication, with communication after backprop, and with it during "
                 "backprop")
      ->check(CLI::PositiveNumber)
      ->excludes("--trace")
      ->excludes("--overlap")
      ->excludes("--no-overlap");
  app.add_option("--json", options.json, "file for what --measure-overlap measures")
      ->needs("--measure-overlap");
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
    const bool without_mpi = !rondo::launch::starts_mpi(options.ranks, options.processes);
    if (options.algo == "mpi" && (without_mpi || options.device == "cuda")) {
      throw CLI::ValidationError("--algo", "mpi works only with --device cpu and under mpirun");
    }
    if (options.device == "cuda" && (options.training.passes > 1 || !options.trace.empty())) {
      throw CLI::ValidationError("--device", "must be cpu with --accumulate or --trace");
    }
    if (options.measured_steps > 0 &&
        (options.device == "cuda" || !rondo::algorithm_named(options.algo))) {
      throw CLI::ValidationError("--measure-overlap", "is for Rondo's algorithms on the CPU");
    }
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  return std::nullopt;
}

}  // namespace lenet
