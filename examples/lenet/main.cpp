// rondo-lenet: trains LeNet on Fashion-MNIST, data-parallel over ranks that are processes of mpirun,
// forked processes, or threads; on the CPU or on GPUs.

#include <algorithm>
#include <exception>
#include <fstream>
#include <memory>
#include <optional>
#include <rondo/cuda.hpp>
#include <rondo/rondo.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "compute_threads.hpp"
#include "exchange_time.hpp"
#include "files.hpp"
#include "mpi_sum.hpp"
#include "options.hpp"
#include "overlap.hpp"
#include "report.hpp"
#include "server/group.hpp"
#include "server/worker.hpp"
#include "tools/launch/launch.hpp"
#include "trainer.hpp"

namespace {

// Fixed where it is not named, and not measured, so that more than two ranks compute the same bits on every machine.
std::size_t bucket_kib_of(const lenet::Options& options) {
  return options.bucket_kib.value_or(options.model == "lenet" ? 16 : 1024);
}

rondo::GradientOptions gradient_options(const lenet::Options& options) {
  rondo::GradientOptions gradients;
  gradients.average = rondo::Average::sum;  // the learner divides by the samples of the minibatch
  gradients.bucket_bytes = bucket_kib_of(options) << 10U;
  gradients.overlap = options.overlap.value_or(true);
  gradients.algorithm = rondo::algorithm_named(options.algo);
  gradients.trace = !options.trace.empty();
  if (options.wire == "bf16") gradients.wire = rondo::WireType::bf16;
  if (options.wire == "f16") gradients.wire = rondo::WireType::f16;
  return gradients;
}

const lenet::Task& task_of(const lenet::Options& options) {
  return lenet::task_named(options.model);
}

lenet::Dataset read_data(const lenet::Options& options) {
  lenet::Dataset data = task_of(options).read(options.data);
  if (options.train_samples > 0) data.train.keep_first(options.train_samples);
  if (options.test_samples > 0) data.test.keep_first(options.test_samples);
  return data;
}

// Empty where another strategy, or MPI, is to be used.
std::optional<rondo::Algorithm> algorithm_of(const lenet::Options& options) {
  if (options.strategy != "all-reduce") return std::nullopt;
  return rondo::algorithm_named(options.algo);
}

// The training options of one rank. Collective.
lenet::TrainingOptions training_of(const lenet::Options& options, rondo::Communicator& comm) {
  lenet::TrainingOptions training = options.training;
  training.slowdown = lenet::slowdown_of(options, comm.rank());
  if (options.batch_norm == "all") {
    // A communicator of its own: gradients travel meanwhile.
    const auto ranks = std::make_shared<rondo::Communicator>(comm.duplicate());
    training.sum_norms = [ranks](std::span<double> sums) { ranks->all_reduce(sums); };
  }
  return training;
}

// What a rank trains with. `reducer` is null where Rondo does not sum the gradients, or they are on a device.
struct Rank {
  // Where the learner's gradients are on the CPU.
  std::optional<rondo::RegisteredMemory<float>> gradients;
  std::unique_ptr<lenet::Learner> learner;
  std::shared_ptr<rondo::GradientReducer>
      reducer;  // shared with the learner, whose gradients it sums
};

Rank make_rank(const lenet::Options& options, const lenet::Dataset& data, rondo::Communicator& comm,
               rondo::cuda::Communicator* devices) {
  const std::optional<rondo::Algorithm> algorithm = algorithm_of(options);
  if (options.algo == "none" && comm.size() > 1) {
    throw std::runtime_error("--algo none is for one rank: several would train separately");
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
    rank.gradients = comm.allocate<float>(gradients.all().size());
    gradients.move_to(rank.gradients->span());
    rank.reducer = std::make_shared<rondo::GradientReducer>(comm, lenet::reducible(gradients),
                                                            gradient_options(options));
    return lenet::exchange_by(rank.reducer);
  };
  rank.learner = lenet::make_cpu_learner(task_of(options), data, training_of(options, comm),
                                         {comm.rank(), comm.size()}, make_exchange);
  return rank;
}

// Throws if the file cannot be written; called before the work is done. An empty name means no file.
void require_writable(const std::string& file) {
  if (!file.empty() && !std::ofstream(file, std::ios::app)) {
    throw std::runtime_error("'" + file + "' cannot be written");
  }
}

// `devices`: null on the CPU. `servers`: null where ranks sum their gradients.
lenet::Run train_on(const lenet::Options& options, rondo::Communicator& comm,
                    rondo::cuda::Communicator* devices, lenet::ServerClient* servers) {
  if (comm.rank() == 0) {
    require_writable(options.trace);
    if (!options.history.empty()) require_writable(lenet::beside(options.history));
  }
  const lenet::Dataset data = read_data(options);
  const Rank rank = make_rank(options, data, comm, devices);
  lenet::Report report(comm.rank() == 0, options.epochs, servers == nullptr);
  std::optional<lenet::ServedWorker> served;
  if (servers != nullptr) served.emplace(*servers, comm, *rank.learner, options.training);
  lenet::Trainer trainer(comm, data, options.training, *rank.learner, served ? &*served : nullptr);
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    const lenet::EpochResult result = trainer.run_epoch(
        epoch, [&](std::size_t done, std::size_t all) { report.step(epoch, done, all); });
    report.epoch_done(epoch, result);
  }
  const std::uint64_t hash = trainer.agreed_hash();
  report.finished(hash, data.train.count());
  if (rank.reducer && !options.trace.empty()) rank.reducer->write_trace(options.trace);
  return {comm.size(), rank.reducer ? rank.reducer->bucket_bytes() : 0, report.results(), hash};
}

void write_history(const lenet::Options& options, const rondo::Communicator& comm,
                   const lenet::Run& run) {
  if (comm.rank() == 0 && !options.history.empty()) lenet::write_history(options, run);
}

void train_served(const lenet::Options& options, rondo::Communicator& ranks) {
  lenet::Run run;
  run.staleness =
      lenet::train_with_servers(ranks,
                                {options.servers, !options.training.asynchronous,
                                 options.most_staleness, task_of(options).shapes->count()},
                                [&](rondo::Communicator& workers, lenet::ServerClient& client) {
                                  run = train_on(options, workers, nullptr, &client);
                                });
  if (ranks.rank() == 0) lenet::print(*run.staleness);
  write_history(options, ranks, run);
}

void tell_exchange_time(const lenet::Options& options, rondo::Communicator& comm, std::size_t bytes,
                        const std::function<void()>& exchange, const std::string& how) {
  if (comm.rank() == 0) require_writable(options.json);
  const lenet::ExchangeTime measured =
      lenet::measure_exchange(comm, bytes, options.measured_exchanges, exchange);
  if (comm.rank() != 0) return;
  lenet::print(measured, how);
  if (!options.json.empty()) lenet::write_exchange_time(options, comm.size(), measured);
}

void measure_exchange_on(const lenet::Options& options, rondo::Communicator& ranks) {
  std::vector<float> gradients(options.exchanged_kib == 0
                                   ? task_of(options).shapes->count()
                                   : (options.exchanged_kib << 10U) / sizeof(float));
  std::vector<float> parameters(gradients.size());
  const std::size_t bytes = gradients.size() * sizeof(float);
  const std::string ranks_text = std::to_string(ranks.size()) + " ranks";
  if (options.strategy == "all-reduce") {
    const auto algorithm = rondo::algorithm_named(options.algo);
    const lenet::SumGradients sum =
        options.algo == "mpi" ? lenet::sum_with_mpi() : [&](std::span<float> values) {
          ranks.all_reduce(values, rondo::ReduceOp::sum, {.algorithm = algorithm});
        };
    tell_exchange_time(
        options, ranks, bytes, [&] { sum(gradients); }, options.algo + ", " + ranks_text);
    return;
  }
  lenet::train_with_servers(
      ranks, {options.servers, true, std::nullopt, gradients.size()},
      [&](rondo::Communicator& workers, lenet::ServerClient& client) {
        const auto exchange = [&] {
          client.push(gradients, 0);
          client.pull(parameters);
        };
        tell_exchange_time(options, workers, bytes, exchange,
                           std::to_string(options.servers) + " of " + ranks_text + " as servers");
      });
}

void measure_on(const lenet::Options& options, rondo::Communicator& comm) {
  if (comm.rank() == 0) require_writable(options.json);
  const lenet::Dataset data = read_data(options);
  lenet::TrainingOptions training = training_of(options, comm);
  training.rate = 0;  // else steps without communication would make the ranks' parameters differ
  std::optional<rondo::RegisteredMemory<float>> memory;
  std::unique_ptr<lenet::Learner> learner;
  std::shared_ptr<rondo::overlap::ThreeModes>
      modes;  // shared with the learner, whose gradients they sum
  learner =
      lenet::make_cpu_learner(task_of(options), data, training, {comm.rank(), comm.size()},
                              [&](lenet::ParameterBlock& gradients) {
                                memory = comm.allocate<float>(gradients.all().size());
                                gradients.move_to(memory->span());
                                modes = std::make_shared<rondo::overlap::ThreeModes>(
                                    comm, lenet::reducible(gradients), gradient_options(options));
                                return lenet::exchange_in(modes);
                              });
  const lenet::Trainer trainer(comm, data, training, *learner);
  learner->begin_epoch(lenet::shuffled(data.train.count(), training.seed, 1));
  const rondo::overlap::Measured measured =
      lenet::measure_overlap(comm, *learner, *modes, options.measured_steps,
                             (data.train.count() + training.batch_size - 1) / training.batch_size);
  if (comm.rank() != 0) return;
  lenet::print(measured, modes->during().progress_place());
  if (!options.json.empty()) lenet::write_overlap(options, comm.size(), measured);
}

// Whether communication during backprop takes less time than after it, on CPUs: on one host it is copying, which the
// reducer's thread can only do beside the computation if there is a core for it. The same on all ranks.
bool overlap_pays(const lenet::Options& options, rondo::Communicator& comm) {
  const auto& places = comm.topology().places;
  const bool one_host = std::all_of(places.begin(), places.end(), [&](const auto& place) {
    return place.host == places.front().host;
  });
  const auto cores =
      static_cast<int>(std::thread::hardware_concurrency());  // that this rank may use
  std::vector<int> pays = {!one_host || cores > comm.size() * options.threads ? 1 : 0};
  comm.all_reduce(pays, rondo::ReduceOp::min);
  return pays[0] != 0;
}

void train(const lenet::Options& named, rondo::Communicator ranks) {
  lenet::Options options = named;
  if (options.measured_steps > 0) {
    measure_on(options, ranks);
    return;
  }
  if (options.measured_exchanges > 0) {
    measure_exchange_on(options, ranks);
    return;
  }
  if (options.strategy != "all-reduce") {
    train_served(options, ranks);
    return;
  }
  if (options.device == "cpu") {
    if (!options.overlap) options.overlap = overlap_pays(options, ranks);
    write_history(options, ranks, train_on(options, ranks, nullptr, nullptr));
    return;
  }
  rondo::cuda::Communicator devices =
      rondo::cuda::join(std::move(ranks), {.device = rondo::cuda::kSpreadOverDevices});
  write_history(options, devices.host(), train_on(options, devices.host(), &devices, nullptr));
}

}  // namespace

int main(int argc, char** argv) {
  lenet::Options options;
  if (const auto status = lenet::read_command_line(argc, argv, options)) return *status;
  return rondo::launch::launch({"rondo-lenet",
                                options.ranks,
                                options.processes,
                                options.device == "cuda" || options.overlap.value_or(true) ||
                                    options.strategy != "all-reduce",
                                {}},
                               &argc, &argv, [&](rondo::Communicator comm) {
                                 lenet::use_compute_threads(options.threads);
                                 train(options, std::move(comm));
                                 return 0;
                               });
}
