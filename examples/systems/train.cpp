#include "train.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <rondo/cuda.hpp>
#include <stdexcept>
#include <utility>

#include "examples/layers/equal_ranks.hpp"
#include "examples/lenet/report.hpp"
#include "examples/lenet/run.hpp"
#include "examples/lenet/summing.hpp"
#include "parallel/lenet_parts.hpp"
#include "read_task.hpp"
#include "results.hpp"
#include "server/group.hpp"
#include "server/worker.hpp"
#include "shares.hpp"

namespace lenet::systems {
namespace {

Job job_of(const SystemOptions& options, rondo::Communicator& comm, bool first) {
  Identity identity = identity_of(options, task_named(options.model));
  identity.batch_norm = options.batch_norm;
  identity.strategy = options.strategy;
  return {options, identity, comm, first};
}

// One rank on the CPU, whose samples are a part of those of `comm`. Not copied nor moved, since its
// members borrow each other.
class HostRun {
 public:
  HostRun(const SystemOptions& options, const Task& task, rondo::Communicator& comm,
          rondo::Communicator& all, bool first)
      : options_(options),
        job_(job_of(options, comm, first)),
        start_(open_files(job_)),
        data_(read_equal_data(options, all)),
        rank_(make_summed_learner(task, data_, learning(options, comm), comm,
                                  gradient_options(options, task), options.algo == "mpi")),
        measured_(comm, *rank_.learner) {
    shares_ = options.training.learner.shares;
    if (!shares_.empty()) shares_ = normalised(shares_);
  }
  HostRun(const HostRun&) = delete;
  HostRun& operator=(const HostRun&) = delete;
  ~HostRun() = default;

  [[nodiscard]] HostLearner& learner() { return *rank_.learner; }
  [[nodiscard]] const EpochExtras& extras() const { return extras_; }

  // `parts`: the ranks that compute other parts of the same model; null: none.
  Run train(Updates& updates, Parts* parts = nullptr) {
    const auto sent = [parts] { return parts == nullptr ? 0 : parts->sent_bytes(); };
    std::size_t before = sent();
    std::size_t trained = before;
    const Hooks hooks{.step_done = [&] { trained = sent(); },
                      .epoch_done =
                          [&] {
                            extras_.part_bytes.push_back(static_cast<double>(trained - before));
                            before = sent();
                            extras_.shares.push_back(shares_);
                            if (options_.shares == "auto") shares_ = measured_.measure();
                          }};
    return run_epochs(job_, data_, *rank_.learner, updates, start_, hooks);
  }

  // Prints, and writes the file of --trace. Collective.
  void show(Run& run, const char* how_sent) {
    if (job_.first) {
      print(run, data_.train.count(), how_sent);
      print(extras_);
    }
    write_trace(options_, rank_.reducer.get(), run);
  }

 private:
  static Dataset read_equal_data(const SystemOptions& options, rondo::Communicator& all) {
    Dataset data = read_data(options);
    require_equal_data(all, data);
    return data;
  }
  static LearnerOptions learning(const SystemOptions& options, rondo::Communicator& comm) {
    if (options.strategy == "all-reduce") require_summing(options.algo, comm);
    LearnerOptions learner = learner_options(options, comm.rank(), comm.size());
    learner.sum_norms = sum_norms(options, comm);
    return learner;
  }

  const SystemOptions& options_;
  Job job_;
  std::optional<TrainingState> start_;
  Dataset data_;
  SummedLearner rank_;
  MeasuredShares measured_;
  std::vector<double> shares_;  // of the epoch that runs, with the sum 1; empty: equal ones
  EpochExtras extras_;
};

// On the rank that writes files.
void write(const SystemOptions& options, bool first, const Run& run, const EpochExtras& extras,
           const std::optional<Staleness>& staleness = std::nullopt) {
  if (first && !options.history.empty()) write_history(options, run, extras, staleness);
}

}  // namespace

void train_on_host(const SystemOptions& options, rondo::Communicator& ranks) {
  const bool first = ranks.rank() == 0;
  HostRun host(options, task_named(options.model), ranks, ranks, first);
  SeparateUpdates updates(ranks, host.learner(), options.separate, element_bytes(options));
  Run run = host.train(updates);
  host.show(run, kByRing);
  write(options, first, run, host.extras());
}

void train_served(const SystemOptions& options, rondo::Communicator& ranks) {
  const Task& task = task_named(options.model);
  const bool first = ranks.rank() == 0;
  const bool asynchronous = options.strategy == "server-async";
  Run run;
  EpochExtras extras;
  const Staleness staleness = train_with_servers(
      ranks, {options.servers, !asynchronous, options.most_staleness, task.shapes->count()},
      [&](rondo::Communicator& workers, ServerClient& client) {
        HostRun host(options, task, workers, workers, first);
        const LearnerOptions& learner = options.training.learner;
        const auto rate = [&options](std::size_t step, std::size_t steps) {
          return rate_at(step, steps, options.separate);
        };
        ServedWorker worker(client, workers, host.learner(),
                            {learner.batch_size, learner.shares, asynchronous, rate});
        run = host.train(worker);
        host.show(run, "");
        extras = host.extras();
      });
  if (first) print(staleness);
  write(options, first, run, extras, staleness);
}

void train_split(const SystemOptions& options, rondo::Communicator& ranks) {
  if (ranks.size() % options.parts != 0) {
    throw std::runtime_error(fmt::format("--parts {}: {} ranks are no multiple of that; start {}",
                                         options.parts, ranks.size(),
                                         (ranks.size() / options.parts + 1) * options.parts));
  }
  const Split split = split_named(options.split);
  const bool first = ranks.rank() == 0;
  const auto parts = std::make_shared<Parts>(*ranks.split(ranks.rank() / options.parts));
  rondo::Communicator comm = *ranks.split(ranks.rank() % options.parts);
  HostRun host(options, lenet_part(split, parts, options.micro_batches), comm, ranks, first);
  SeparateUpdates updates(comm, host.learner(), options.separate, element_bytes(options));
  Run run = host.train(updates, parts.get());
  run.ranks = ranks.size();
  ParameterBlock mine = host.learner().parameters();
  run.hash = hash_of(joined(mine, *parts, split));
  host.show(run, kByRing);
  write(options, first, run, host.extras());
}

void train_on_devices(const SystemOptions& options, rondo::Communicator ranks) {
  auto devices = rondo::cuda::join(std::move(ranks), {.device = rondo::cuda::kSpreadOverDevices});
  rondo::Communicator& comm = devices.host();
  require_summing(options.algo, comm);
  const Task& task = task_named(options.model);
  const Job job = job_of(options, comm, comm.rank() == 0);
  const auto start = open_files(job);
  const Dataset data = read_data(options);
  require_equal_data(comm, data);
  LearnerOptions learning = options.training.learner;
  learning.sum_norms = sum_norms(options, comm);
  const auto learner =
      make_cuda_learner(task, data, learning, devices, gradient_options(options, task));
  Updates updates(comm, *learner, element_bytes(options));
  const Run run = run_epochs(job, data, *learner, updates, start);
  if (job.first) print(run, data.train.count(), kByRing);
  const std::size_t epochs = run.results.size();
  write(options, job.first, run,
        {std::vector<double>(epochs), std::vector<std::vector<double>>(epochs)});
}

}  // namespace lenet::systems
