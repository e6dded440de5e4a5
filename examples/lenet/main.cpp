// rondo-lenet: trains LeNet on Fashion-MNIST, data-parallel over ranks that are processes of mpirun,
// forked processes, or threads; on the CPU or on GPUs.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <rondo/cuda.hpp>
#include <rondo/rondo.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "compute_threads.hpp"
#include "mpi_sum.hpp"
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
  int threads = 1;
  int ranks = 0;      // threads
  int processes = 0;  // forked; neither: those of mpirun
};

std::unique_ptr<lenet::Learner> make_learner(const Options& options, const lenet::Dataset& data,
                                             rondo::Communicator& comm,
                                             rondo::cuda::Communicator* devices) {
  const std::optional<rondo::Algorithm> algorithm = rondo::algorithm_named(options.algo);
  if (options.algo == "none" && comm.size() > 1) {
    throw std::runtime_error("--algo none is for one rank: others would go their own ways");
  }
  if (devices != nullptr) {
    return lenet::make_cuda_learner(data, options.training, *devices, algorithm);
  }
  lenet::SumGradients sum = [](std::span<float>) {};
  if (options.algo == "mpi") sum = lenet::sum_with_mpi();
  if (algorithm) {
    rondo::CallOptions call;
    call.algorithm = algorithm;
    sum = [&comm, call](std::span<float> gradients) {
      comm.all_reduce(gradients, rondo::ReduceOp::sum, call);
    };
  }
  return lenet::make_cpu_learner(data, options.training, {comm.rank(), comm.size()},
                                 std::move(sum));
}

// `devices`: null on the CPU.
void train_on(const Options& options, rondo::Communicator& comm,
              rondo::cuda::Communicator* devices) {
  const lenet::Dataset data = lenet::read_dataset(options.data);
  const auto learner = make_learner(options, data, comm, devices);
  lenet::Report report(comm.rank() == 0, options.epochs);
  lenet::Trainer trainer(comm, data, options.training, *learner);
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    const lenet::EpochResult result = trainer.run_epoch(
        epoch, [&](std::size_t done, std::size_t all) { report.step(epoch, done, all); });
    report.epoch_done(epoch, result);
  }
  const std::uint64_t hash = trainer.agreed_hash();
  report.finished(hash, data.train.count());
  if (comm.rank() == 0 && !options.history.empty()) {
    report.write_history(options.history,
                         {{"ranks", comm.size()},
                          {"device", options.device},
                          {"epochs", options.epochs},
                          {"batch_size", options.training.batch_size},
                          {"lr", options.training.rate},
                          {"seed", options.training.seed},
                          {"algo", options.algo},
                          {"threads", options.threads},
                          {"version", RONDO_VERSION}},
                         hash);
  }
}

void train(const Options& options, rondo::Communicator ranks) {
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
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  return rondo::launch::launch(
      {"rondo-lenet", options.ranks, options.processes, options.device == "cuda", {}}, &argc, &argv,
      [&](rondo::Communicator comm) {
        lenet::use_compute_threads(options.threads);
        train(options, std::move(comm));
        return 0;
      });
}
