#include "rank_options.hpp"

#include <fstream>
#include <memory>
#include <span>
#include <stdexcept>

namespace lenet {
namespace {

// Fixed where it is not named, and not measured, so that more than two ranks compute the same bits
// on every machine.
std::size_t bucket_kib_of(const Options& options) {
  return options.bucket_kib.value_or(task_of(options).bucket_kib);
}

}  // namespace

rondo::GradientOptions gradient_options(const Options& options) {
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

const Task& task_of(const Options& options) { return task_named(options.model); }

Dataset read_data(const Options& options) {
  const Task& task = task_of(options);
  Dataset data = task.read(options.data.value_or(task.folder));
  if (options.train_samples > 0) data.train.keep_first(options.train_samples);
  if (options.test_samples > 0) data.test.keep_first(options.test_samples);
  return data;
}

std::optional<rondo::Algorithm> algorithm_of(const Options& options) {
  if (options.strategy != "all-reduce") return std::nullopt;
  return rondo::algorithm_named(options.algo);
}

TrainingOptions training_of(const Options& options, rondo::Communicator& comm) {
  TrainingOptions training = options.training;
  training.slowdown = slowdown_of(options, comm.rank(), comm.size());
  if (options.batch_norm == "all") {
    // A communicator of its own: gradients travel meanwhile.
    const auto ranks = std::make_shared<rondo::Communicator>(comm.duplicate());
    training.sum_norms = [ranks](std::span<double> sums) { ranks->all_reduce(sums); };
  }
  return training;
}

void require_writable(const std::string& file) {
  if (!file.empty() && !std::ofstream(file, std::ios::app)) {
    throw std::runtime_error("'" + file + "' cannot be written");
  }
}

}  // namespace lenet
