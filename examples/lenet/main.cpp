// rondo-lenet: trains LeNet, or ResNet-18, on Fashion-MNIST over ranks that are processes of a
// launcher, forked processes, or threads; on the CPU or on GPUs.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <rondo/cuda.hpp>
#include <rondo/rondo.hpp>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "checkpoint.hpp"
#include "examples/layers/compute_threads.hpp"
#include "examples/layers/equal_ranks.hpp"
#include "examples/layers/replace_file.hpp"
#include "files.hpp"
#include "measuring.hpp"
#include "mpi_sum.hpp"
#include "options.hpp"
#include "parallel/lenet_parts.hpp"
#include "rank_options.hpp"
#include "report.hpp"
#include "server/group.hpp"
#include "server/worker.hpp"
#include "tools/launch/launch.hpp"
#include "tools/launch/write_file.hpp"
#include "trainer.hpp"

namespace {

// What a rank trains with. `reducer` is null where Rondo does not sum the gradients, or they are on
// a device.
struct Rank {
  // Where the learner's gradients are on the CPU.
  std::optional<rondo::RegisteredMemory<float>> gradients;
  std::unique_ptr<lenet::Learner> learner;
  std::shared_ptr<rondo::GradientReducer>
      reducer;  // shared with the learner, whose gradients it sums
};

// What a rank works with beside the ranks that take other samples: none of these, or one.
struct Partners {
  rondo::cuda::Communicator* devices = nullptr;
  lenet::ServerClient* servers = nullptr;
  // All ranks; the ranks that compute other parts of the same model; and this rank's part.
  rondo::Communicator* all = nullptr;
  lenet::Parts* parts = nullptr;
  const lenet::Task* part = nullptr;
};

Rank make_rank(const lenet::Options& options, const lenet::Dataset& data, rondo::Communicator& comm,
               const Partners& partners) {
  const std::optional<rondo::Algorithm> algorithm = lenet::algorithm_of(options);
  if (options.algo == "none" && comm.size() > 1) {
    throw std::runtime_error("--algo none is for one rank: several would train separately");
  }
  Rank rank;
  if (partners.devices != nullptr) {
    rank.learner = lenet::make_cuda_learner(
        lenet::task_of(options), data, lenet::training_of(options, comm), *partners.devices,
        algorithm ? std::optional(lenet::gradient_options(options)) : std::nullopt);
    return rank;
  }
  const auto make_exchange = [&](lenet::ParameterBlock& gradients) {
    if (options.algo == "mpi") return lenet::exchange_by(lenet::sum_with_mpi(), gradients);
    if (!algorithm) return lenet::Exchange();
    rank.gradients = comm.allocate<float>(gradients.all().size());
    gradients.move_to(rank.gradients->span());
    rank.reducer = std::make_shared<rondo::GradientReducer>(comm, lenet::reducible(gradients),
                                                            lenet::gradient_options(options));
    return lenet::exchange_by(rank.reducer);
  };
  rank.learner = lenet::make_cpu_learner(
      partners.part != nullptr ? *partners.part : lenet::task_of(options), data,
      lenet::training_of(options, comm), {comm.rank(), comm.size()}, make_exchange);
  return rank;
}

// `comm`: the ranks that take other samples.
lenet::Run train_on(const lenet::Options& options, rondo::Communicator& comm,
                    const Partners& partners) {
  lenet::Parts* parts = partners.parts;
  const bool first = comm.rank() == 0 && (parts == nullptr || parts->part() == 0);
  const std::optional<lenet::TrainingState> start =
      first ? lenet::read_checkpoint(options) : std::nullopt;
  if (first) {
    lenet::require_writable(options.trace);
    for (const std::string& file : {options.history, options.checkpoint}) {
      if (!file.empty()) lenet::require_writable(lenet::beside(file));
    }
  }
  const lenet::Dataset data = lenet::read_data(options);
  lenet::require_equal_data(partners.all != nullptr ? *partners.all : comm, data);
  const Rank rank = make_rank(options, data, comm, partners);
  lenet::Report report(first, options.epochs, partners.servers == nullptr);
  std::optional<lenet::ServedWorker> served;
  if (partners.servers != nullptr) {
    served.emplace(*partners.servers, comm, *rank.learner, options.training);
  }
  lenet::Trainer trainer(comm, data, options.training, *rank.learner, served ? &*served : nullptr,
                         start ? &*start : nullptr);
  const int epochs_before = trainer.epochs_done();
  for (int epoch = epochs_before + 1; epoch <= options.epochs; ++epoch) {
    const std::size_t before = parts == nullptr ? 0 : parts->sent_bytes();
    std::size_t trained = before;
    lenet::EpochResult result = trainer.run_epoch(epoch, [&](std::size_t done, std::size_t all) {
      report.step(epoch, done, all);
      if (parts != nullptr) trained = parts->sent_bytes();
    });
    result.part_bytes = static_cast<double>(trained - before);
    report.epoch_done(epoch, result);
    if (first && !options.checkpoint.empty()) lenet::write_checkpoint(options, trainer.state());
  }
  std::uint64_t hash = trainer.agreed_hash();
  if (parts != nullptr) {
    lenet::ParameterBlock mine = rank.learner->parameters();
    hash = lenet::hash_of(lenet::joined(mine, *parts, lenet::split_named(options.split)));
  }
  report.finished(hash, data.train.count());
  if (rank.reducer && !options.trace.empty()) rank.reducer->write_trace(options.trace);
  return {comm.size(), rank.reducer ? rank.reducer->bucket_bytes() : 0, epochs_before,
          report.results(), hash};
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
                                 options.most_staleness, lenet::task_of(options).shapes->count()},
                                [&](rondo::Communicator& workers, lenet::ServerClient& client) {
                                  run = train_on(options, workers, {.servers = &client});
                                });
  if (ranks.rank() == 0) lenet::print(*run.staleness);
  write_history(options, ranks, run);
}

// Neighbouring ranks compute the parts of one model.
void train_split(const lenet::Options& options, rondo::Communicator& ranks) {
  if (ranks.size() % options.parts != 0) {
    throw std::runtime_error(fmt::format("--parts {}: {} ranks are no multiple of that; start {}",
                                         options.parts, ranks.size(),
                                         (ranks.size() / options.parts + 1) * options.parts));
  }
  const auto parts = std::make_shared<lenet::Parts>(*ranks.split(ranks.rank() / options.parts));
  rondo::Communicator data = *ranks.split(ranks.rank() % options.parts);
  const lenet::Task part =
      lenet::lenet_part(lenet::split_named(options.split), parts, options.micro_batches);
  lenet::Run run = train_on(options, data, {.all = &ranks, .parts = parts.get(), .part = &part});
  run.ranks = ranks.size();
  write_history(options, ranks, run);
}

// Whether communication during backprop takes less time than after it, on CPUs: on one host it is
// copying, which the reducer's thread can only do beside the computation if there is a core for it.
// The same on all ranks.
bool overlap_pays(const lenet::Options& options, rondo::Communicator& comm) {
  const auto& places = comm.topology().places;
  const bool one_host = std::all_of(places.begin(), places.end(), [&](const auto& place) {
    return rondo::on_one_host(place, places.front());
  });
  const auto cores =
      static_cast<int>(std::thread::hardware_concurrency());  // that this rank may use
  std::vector<int> pays = {!one_host || cores > comm.size() * options.threads ? 1 : 0};
  comm.all_reduce(pays, rondo::ReduceOp::min);
  return pays[0] != 0;
}

void train(const lenet::Options& named, rondo::Communicator ranks) {
  lenet::require_equal_settings(ranks, named.settings);
  lenet::Options options = named;
  if (options.measured_steps > 0) {
    lenet::measure_steps(options, ranks);
    return;
  }
  if (options.measured_exchanges > 0) {
    lenet::measure_exchanges(options, ranks);
    return;
  }
  if (options.strategy != "all-reduce") {
    train_served(options, ranks);
    return;
  }
  if (options.device == "cpu") {
    if (!options.overlap) options.overlap = overlap_pays(options, ranks);
    if (!options.split.empty()) {
      train_split(options, ranks);
    } else {
      write_history(options, ranks, train_on(options, ranks, {}));
    }
    return;
  }
  rondo::cuda::Communicator devices =
      rondo::cuda::join(std::move(ranks), {.device = rondo::cuda::kSpreadOverDevices});
  write_history(options, devices.host(), train_on(options, devices.host(), {.devices = &devices}));
}

}  // namespace

int main(int argc, char** argv) {
  rondo::launch::report_full_files();
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
