#include "read_task.hpp"

#include <memory>
#include <span>

namespace lenet::systems {

Dataset read_data(const SystemOptions& options) {
  const Task& task = task_named(options.model);
  Dataset data = task.read(options.data.value_or(task.folder));
  if (options.train_samples > 0) data.train.keep_first(options.train_samples);
  if (options.test_samples > 0) data.test.keep_first(options.test_samples);
  return data;
}

SumOverRanks sum_norms(const SystemOptions& options, rondo::Communicator& comm) {
  if (options.batch_norm != "all") return {};
  // A communicator of its own: gradients travel meanwhile.
  const auto ranks = std::make_shared<rondo::Communicator>(comm.duplicate());
  return [ranks](std::span<double> sums) { ranks->all_reduce(sums); };
}

}  // namespace lenet::systems
