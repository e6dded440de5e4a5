// rondo-lenet: trains LeNet on Fashion-MNIST, data-parallel over the ranks of mpirun.

#include <mpi.h>
#include <omp.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <rondo/mpi.hpp>
#include <rondo/rondo.hpp>
#include <string>

#include "report.hpp"
#include "trainer.hpp"

namespace {

struct Options {
  int epochs = 10;
  lenet::TrainingOptions training;
  std::string algo = "ring";
  std::string data = "/usr/share/datasets/fashion-mnist";
  std::string history;
  int threads = 1;
};

// MPI's own all-reduce on the same memory, for comparison.
void sum_with_mpi(std::span<float> gradients) {
  MPI_Allreduce(MPI_IN_PLACE, gradients.data(), static_cast<int>(gradients.size()), MPI_FLOAT,
                MPI_SUM, MPI_COMM_WORLD);
}

lenet::SumGradients choose(const std::string& algo, rondo::Communicator& comm) {
  if (algo == "mpi") return sum_with_mpi;
  rondo::CallOptions options;
  options.algorithm = algo == "naive" ? rondo::Algorithm::naive : rondo::Algorithm::ring;
  return [&comm, options](std::span<float> gradients) {
    comm.all_reduce(gradients, rondo::ReduceOp::sum, options);
  };
}

void train(const Options& options) {
  rondo::Communicator comm = rondo::from_mpi(MPI_COMM_WORLD);
  omp_set_num_threads(options.threads);
  const lenet::Dataset data = lenet::read_dataset(options.data);
  lenet::Report report(comm.rank() == 0, options.epochs);
  lenet::Trainer trainer(comm, data, options.training, choose(options.algo, comm));
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

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Trains LeNet on Fashion-MNIST; start it with mpirun -n RANKS.", "rondo-lenet");
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
  app.add_option("--algo", options.algo, "how gradients are summed")
      ->check(CLI::IsMember({"ring", "naive", "mpi"}))
      ->capture_default_str();
  app.add_option("--data", options.data, "folder of the four IDX files")->capture_default_str();
  app.add_option("--history", options.history, "file to write the run's history to (JSON)");
  app.add_option("--threads", options.threads, "compute threads of a rank")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.set_version_flag("--version", RONDO_VERSION);
  CLI11_PARSE(app, argc, argv);

  int level = MPI_THREAD_SINGLE;
  // Blocking calls from the main thread are all that is made.
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  try {
    train(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rondo-lenet: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
