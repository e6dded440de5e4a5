#include "measuring.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <rondo/rondo.hpp>
#include <string>
#include <vector>

#include "examples/layers/equal_ranks.hpp"
#include "examples/lenet/mpi_sum.hpp"
#include "examples/lenet/run.hpp"
#include "exchange_time.hpp"
#include "overlap.hpp"
#include "read_task.hpp"
#include "results.hpp"
#include "server/group.hpp"

namespace lenet::systems {
namespace {

void report_exchange_time(const SystemOptions& options, rondo::Communicator& comm,
                          std::size_t bytes, const std::function<void()>& exchange,
                          const std::string& how) {
  if (comm.rank() == 0) require_writable(options.json);
  const ExchangeTime measured = measure_exchange(comm, bytes, options.measured_exchanges, exchange);
  if (comm.rank() != 0) return;
  print(measured, how);
  if (!options.json.empty()) write_exchange_time(options, comm.size(), measured);
}

}  // namespace

void measure_exchanges(const SystemOptions& options, rondo::Communicator& ranks) {
  std::vector<float> gradients(options.exchanged_kib == 0
                                   ? task_named(options.model).shapes->count()
                                   : (options.exchanged_kib << 10U) / sizeof(float));
  std::vector<float> parameters(gradients.size());
  const std::size_t bytes = gradients.size() * sizeof(float);
  const std::string ranks_text = std::to_string(ranks.size()) + " ranks";
  if (options.strategy == "all-reduce") {
    const auto algorithm = rondo::algorithm_named(options.algo);
    const SumGradients sum = options.algo == "mpi" ? sum_with_mpi() : [&](std::span<float> values) {
      ranks.all_reduce(values, rondo::ReduceOp::sum, {.algorithm = algorithm});
    };
    report_exchange_time(
        options, ranks, bytes, [&] { sum(gradients); }, options.algo + ", " + ranks_text);
    return;
  }
  train_with_servers(ranks, {options.servers, true, std::nullopt, gradients.size()},
                     [&](rondo::Communicator& workers, ServerClient& client) {
                       const auto exchange = [&] {
                         client.push(gradients, 0);
                         client.pull(parameters);
                       };
                       report_exchange_time(
                           options, workers, bytes, exchange,
                           std::to_string(options.servers) + " of " + ranks_text + " as servers");
                     });
}

void measure_steps(const SystemOptions& options, rondo::Communicator& comm) {
  if (comm.rank() == 0) require_writable(options.json);
  const Task& task = task_named(options.model);
  const Dataset data = read_data(options);
  require_equal_data(comm, data);
  LearnerOptions training = options.training.learner;
  training.sum_norms = sum_norms(options, comm);
  training.rate = 0;  // else steps without communication would make the ranks' parameters differ
  std::optional<rondo::RegisteredMemory<float>> memory;
  std::unique_ptr<HostLearner> learner;
  std::shared_ptr<rondo::overlap::ThreeModes>
      modes;  // shared with the learner, whose gradients they sum
  learner = make_cpu_learner(task, data, training, {comm.rank(), comm.size()},
                             [&](ParameterBlock& gradients) {
                               memory = comm.allocate<float>(gradients.all().size());
                               gradients.move_to(memory->span());
                               modes = std::make_shared<rondo::overlap::ThreeModes>(
                                   comm, reducible(gradients), *gradient_options(options, task));
                               return exchange_in(modes);
                             });
  ParameterBlock parameters = learner->parameters();
  if (comm.rank() == 0) initialise(parameters, options.training.seed);
  Updates(comm, *learner).begin(parameters);
  learner->begin_epoch(shuffled(data.train.count(), options.training.seed, 1));
  const rondo::overlap::Measured measured =
      measure_overlap(comm, *learner, *modes, options.measured_steps,
                      minibatches(data.train.count(), training.batch_size));
  if (comm.rank() != 0) return;
  print(measured, modes->during().progress_place());
  if (!options.json.empty()) write_overlap(options, comm.size(), measured);
}

}  // namespace lenet::systems
