// rondo-lenet: trains LeNet on Fashion-MNIST, data-parallel over ranks that are processes of mpirun,
// forked processes, or threads; on the CPU or on GPUs.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <rondo/cuda.hpp>
#include <rondo/rondo.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "compute_threads.hpp"
#include "mpi_sum.hpp"
#include "overlap.hpp"
#include "report.hpp"
#include "tools/launch/launch.hpp"
#include "trainer.hpp"

namespace {

struct Options {
  int epochs = 10;
  lenet::TrainingOptions training;
  std::string algo = "ring";
  std::string device = "cpu";
  std::string data = "/usr/share/datasets/fashion-mnist";
  std::string history;
  std::size_t bucket_kib =
      16;  // the same on every machine, so that more than two ranks find the same bits
  bool no_overlap = false;
  std::string wire = "exact";
  std::string trace;
  int measured_steps = 0;
  std::string json;  // of what was measured
  int threads = 1;
  int ranks = 0;      // threads
  int processes = 0;  // forked; neither: those of mpirun
};

rondo::GradientOptions gradient_options(const Options& options) {
  rondo::GradientOptions gradients;
  gradients.average = rondo::Average::sum;  // the learner divides by the samples of the minibatch
  gradients.bucket_bytes = options.bucket_kib << 10U;
  gradients.overlap = !options.no_overlap;
  gradients.algorithm = rondo::algorithm_named(options.algo);
  gradients.trace = !options.trace.empty();
  if (options.wire == "bf16") gradients.wire = rondo::WireType::bf16;
  if (options.wire == "f16") gradients.wire = rondo::WireType::f16;
  return gradients;
}

// What a rank trains with. `reducer` is null where gradients are not Rondo's to sum, or are on a device.
struct Rank {
  std::unique_ptr<lenet::Learner> learner;
  std::shared_ptr<rondo::GradientReducer>
      reducer;  // also the learner's, whose gradients it works on
};

Rank make_rank(const Options& options, const lenet::Dataset& data, rondo::Communicator& comm,
               rondo::cuda::Communicator* devices) {
  const std::optional<rondo::Algorithm> algorithm = rondo::algorithm_named(options.algo);
  if (options.algo == "none" && comm.size() > 1) {
    throw std::runtime_error("--algo none is for one rank: others would go their own ways");
  }
  Rank rank;
  if (devices != nullptr) {
    rank.learner = lenet::make_cuda_learner(
        data, options.training, *devices,
        algorithm ? std::optional(gradient_options(options)) : std::nullopt);
    return rank;
  }
  const auto make_exchange = [&](lenet::ParameterBlock& gradients) {
    if (options.algo == "mpi") return lenet::exchange_by(lenet::sum_with_mpi(), gradients);
    if (!algorithm) return lenet::Exchange();
    rank.reducer = std::make_shared<rondo::GradientReducer>(comm, lenet::reducible(gradients),
                                                            gradient_options(options));
    return lenet::exchange_by(rank.reducer);
  };
  rank.learner =
      lenet::make_cpu_learner(data, options.training, {comm.rank(), comm.size()}, make_exchange);
  return rank;
}

// `devices`: null on the CPU.
void train_on(const Options& options, rondo::Communicator& comm,
              rondo::cuda::Communicator* devices) {
  if (comm.rank() == 0 && !options.trace.empty() && !std::ofstream(options.trace)) {
    throw std::runtime_error("'" + options.trace + "' cannot be written");
  }
  const lenet::Dataset data = lenet::read_dataset(options.data);
  const Rank rank = make_rank(options, data, comm, devices);
  lenet::Report report(comm.rank() == 0, options.epochs);
  lenet::Trainer trainer(comm, data, options.training, *rank.learner);
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    const lenet::EpochResult result = trainer.run_epoch(
        epoch, [&](std::size_t done, std::size_t all) { report.step(epoch, done, all); });
    report.epoch_done(epoch, result);
  }
  const std::uint64_t hash = trainer.agreed_hash();
  report.finished(hash, data.train.count());
  if (rank.reducer && !options.trace.empty()) rank.reducer->write_trace(options.trace);
  if (comm.rank() == 0 && !options.history.empty()) {
    report.write_history(options.history,
                         {{"ranks", comm.size()},
                          {"device", options.device},
                          {"epochs", options.epochs},
                          {"batch_size", options.training.batch_size},
                          {"lr", options.training.rate},
                          {"seed", options.training.seed},
                          {"algo", options.algo},
                          {"bucket_bytes", rank.reducer ? rank.reducer->bucket_bytes() : 0},
                          {"overlap", rondo::algorithm_named(options.algo) && !options.no_overlap},
                          {"wire", options.wire},
                          {"accumulate", options.training.passes},
                          {"threads", options.threads},
                          {"version", RONDO_VERSION}},
                         hash);
  }
}

void measure_on(const Options& options, rondo::Communicator& comm) {
  const lenet::Dataset data = lenet::read_dataset(options.data);
  lenet::TrainingOptions training = options.training;
  training.rate = 0;  // steps alone would lead each rank elsewhere
  std::unique_ptr<lenet::Learner> learner;
  std::shared_ptr<lenet::ThreeModes> modes;  // also the learner's, whose gradients they work on
  learner = lenet::make_cpu_learner(
      data, training, {comm.rank(), comm.size()}, [&](lenet::ParameterBlock& gradients) {
        modes = std::make_shared<lenet::ThreeModes>(comm, gradients, gradient_options(options));
        return lenet::exchange_in(modes);
      });
  const lenet::Trainer trainer(comm, data, training, *learner);
  learner->begin_epoch(lenet::shuffled(data.train.count(), training.seed, 1));
  const lenet::OverlapReport report = lenet::measure_overlap(
      comm, *learner, *modes, options.measured_steps, data.train.count() / training.batch_size);
  if (comm.rank() != 0) return;
  lenet::print(report);
  if (options.json.empty()) return;
  nlohmann::json all = lenet::json_of(report);
  all["machine"] = {{"cores", rondo::this_machine().cores}};
  all["config"] = {{"ranks", comm.size()},
                   {"batch_size", training.batch_size},
                   {"steps", options.measured_steps},
                   {"version", RONDO_VERSION}};
  std::ofstream out(options.json);
  out << all.dump(1) << '\n';
  if (!out) throw std::runtime_error("'" + options.json + "' cannot be written");
}

void train(const Options& options, rondo::Communicator ranks) {
  if (options.measured_steps > 0) {
    measure_on(options, ranks);
    return;
  }
  if (options.device == "cpu") {
    train_on(options, ranks, nullptr);
    return;
  }
  rondo::cuda::Communicator devices =
      rondo::cuda::join(std::move(ranks), {.device = rondo::cuda::kSpreadOverDevices});
  train_on(options, devices.host(), &devices);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Trains LeNet on Fashion-MNIST; start it with mpirun -n RANKS, or with --ranks or "
      "--processes.",
      "rondo-lenet");
  app.add_option("--epochs", options.epochs, "passes over the training set")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--batch-size", options.training.batch_size,
                 "samples of a minibatch, shared between the ranks")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 20U))
      ->capture_default_str();
  app.add_option("--lr", options.training.rate, "learning rate")->capture_default_str();
  app.add_option("--seed", options.training.seed, "of parameters and shuffles")
      ->capture_default_str();
  app.add_option("--algo", options.algo,
                 "how gradients are summed; mpi: on the CPU, under mpirun; none: one rank alone")
      ->check(CLI::IsMember({"ring", "naive", "mpi", "none"}))
      ->capture_default_str();
  app.add_option("--device", options.device, "cpu, or cuda: GPUs, one for each rank in turn")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--bucket-kib", options.bucket_kib,
                 "cap of a bucket of gradients; 0: from what is measured of the ranks' links, and "
                 "the model's size")
      ->capture_default_str();
  app.add_flag("--no-overlap", options.no_overlap, "sums gradients after backprop, not during it");
  app.add_option("--wire", options.wire, "as what gradients travel")
      ->check(CLI::IsMember({"exact", "bf16", "f16"}))
      ->capture_default_str();
  app.add_option(
         "--accumulate", options.training.passes,
         "passes over parts of a minibatch, whose gradients are added up before they travel")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--trace", options.trace,
                 "file for a timeline of all ranks, which ui.perfetto.dev opens; some MB an epoch");
  app.add_option("--measure-overlap", options.measured_steps,
                 "instead of training, takes so many steps three times each: without "
                 "communication, with it "
                 "after backprop, and during it")
      ->check(CLI::PositiveNumber)
      ->excludes("--trace")
      ->excludes("--no-overlap");
  app.add_option("--json", options.json, "file for what --measure-overlap measures")
      ->needs("--measure-overlap");
  app.add_option("--data", options.data, "folder of the four IDX files")->capture_default_str();
  app.add_option("--history", options.history, "file to write the run's history to (JSON)");
  app.add_option("--threads", options.threads, "compute threads of a rank, on the CPU")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--ranks", options.ranks, "ranks that are threads, without mpirun")
      ->check(CLI::Range(1, 64));
  app.add_option("--processes", options.processes,
                 "ranks that are forked processes, without mpirun")
      ->check(CLI::Range(1, 64))
      ->excludes("--ranks");
  app.set_version_flag("--version", RONDO_VERSION);
  try {
    app.parse(argc, argv);
    const bool without_mpi = options.ranks + options.processes > 0;
    if (options.algo == "mpi" && (without_mpi || options.device == "cuda")) {
      throw CLI::ValidationError("--algo", "mpi sums host memory, under mpirun");
    }
    if (options.device == "cuda" && (options.training.passes > 1 || !options.trace.empty())) {
      throw CLI::ValidationError("--device", "with --accumulate or --trace, the CPU");
    }
    if (options.measured_steps > 0 &&
        (options.device == "cuda" || !rondo::algorithm_named(options.algo))) {
      throw CLI::ValidationError("--measure-overlap", "is for Rondo's algorithms on the CPU");
    }
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  return rondo::launch::launch({"rondo-lenet",
                                options.ranks,
                                options.processes,
                                options.device == "cuda" || !options.no_overlap,
                                {}},
                               &argc, &argv, [&](rondo::Communicator comm) {
                                 lenet::use_compute_threads(options.threads);
                                 train(options, std::move(comm));
                                 return 0;
                               });
}
