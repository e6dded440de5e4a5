#include "contradictions.hpp"

#include <CLI/CLI.hpp>
#include <rondo/options.hpp>
#include <string>

#include "tasks.hpp"

namespace lenet::systems {
namespace {

// Throws CLI::ValidationError.
void refuse_contradictions_of_strategy(const SystemOptions& options) {
  const LearnerOptions& learner = options.training.learner;
  const SeparateOptions& separate = options.separate;
  const bool served = options.strategy != "all-reduce";
  if (served && (options.device == "cuda" || options.measured_steps > 0 || options.algo != "ring" ||
                 options.wire != "exact" || !options.trace.empty() || separate.local_steps > 0 ||
                 separate.resync_steps > 0 || options.shares == "auto" || options.overlap ||
                 options.bucket_kib)) {
    throw CLI::ValidationError("--strategy",
                               options.strategy +
                                   " is for training on the CPU without --algo, --wire, --trace, "
                                   "--bucket-kib, --overlap, --no-overlap, --measure-overlap, "
                                   "--local-steps, --resync and --shares auto");
  }
  if (!served && options.servers != 1) {
    throw CLI::ValidationError("--servers", "is for --strategy server and server-async");
  }
  const bool trains_otherwise =
      !learner.shares.empty() || options.shares == "auto" || !options.slow.empty() ||
      !options.checkpoint.empty() || separate.warmup_epochs > 0 || separate.local_steps > 0 ||
      separate.resync_steps > 0 || learner.passes > 1 || options.wire != "exact" ||
      options.overlap || options.bucket_kib || !options.trace.empty() ||
      options.batch_norm != "rank" || options.train_samples > 0 || options.test_samples > 0;
  if (options.measured_exchanges > 0 && (options.algo == "none" || trains_otherwise)) {
    throw CLI::ValidationError("--measure-exchange",
                               "trains nothing: --algo none, --shares, --slow, --checkpoint, "
                               "--warmup, --local-steps, --resync, --accumulate, --wire, "
                               "--overlap, --bucket-kib, --trace, --batch-norm, --train-samples "
                               "and --test-samples do not go with it");
  }
  if (options.most_staleness && options.strategy != "server-async") {
    throw CLI::ValidationError("--max-staleness", "is for --strategy server-async");
  }
  if (options.strategy == "server-async" &&
      (!learner.shares.empty() || options.measured_exchanges > 0)) {
    throw CLI::ValidationError("--strategy",
                               "server-async has no shares, since whoever is free takes the next "
                               "part of a minibatch, and nothing for --measure-exchange");
  }
  if ((!options.slow.empty() || options.measured_exchanges > 0) &&
      (options.device == "cuda" || options.measured_steps > 0)) {
    throw CLI::ValidationError("--slow and --measure-exchange", "are for --device cpu");
  }
}

}  // namespace

void refuse_contradictions(const SystemOptions& options) {
  refuse_one_file_for_two({{"--history", options.history},
                           {"--checkpoint", options.checkpoint},
                           {"--trace", options.trace},
                           {"--json", options.json}});
  refuse_contradictions_of_strategy(options);
  const Task& task = task_named(options.model);
  if (options.data && task.folder.empty()) {
    throw CLI::ValidationError("--data",
                               "is of no use: the samples of " + task.name + " are in no files");
  }
  if (options.batch_norm == "all" && (!task.normalises || options.strategy == "server-async")) {
    throw CLI::ValidationError(
        "--batch-norm",
        "all is for a model with batch normalisation, and not for --strategy server-async, whose "
        "ranks take no steps together");
  }
  const SeparateOptions& separate = options.separate;
  if (options.batch_norm == "all" && separate.local_steps > 0) {
    throw CLI::ValidationError("--batch-norm",
                               "all is not for --local-steps, where each rank has parameters of "
                               "its own, whose statistics have no meaning together");
  }
  if (!options.split.empty() &&
      (options.model != "lenet" || options.device == "cuda" || options.strategy != "all-reduce" ||
       options.algo == "mpi" || options.measured_steps > 0 || options.measured_exchanges > 0 ||
       !options.trace.empty() || !options.checkpoint.empty() || !options.slow.empty() ||
       options.shares == "auto")) {
    throw CLI::ValidationError("--split",
                               "is for LeNet on the CPU, and not for --strategy, --algo mpi, "
                               "--trace, --checkpoint, --slow, --shares auto, --measure-overlap "
                               "and --measure-exchange");
  }
  if (options.micro_batches != SystemOptions().micro_batches && options.split != "layers") {
    throw CLI::ValidationError("--micro-batches", "is for --split layers");
  }
  if (options.split == "layers" && options.parts != 2) {
    throw CLI::ValidationError("--parts", "must be 2 with --split layers");
  }
  lenet::refuse_contradictions(static_cast<const Options&>(options));
  if (options.device == "cuda" && options.training.learner.passes > 1) {
    throw CLI::ValidationError("--device", "must be cpu with --accumulate");
  }
  if (options.measured_steps > 0 &&
      (options.device == "cuda" || !rondo::algorithm_named(options.algo))) {
    throw CLI::ValidationError("--measure-overlap", "is for Rondo's algorithms on the CPU");
  }
  if (!by_reducer(options) && options.wire != "exact") {
    throw CLI::ValidationError("--wire",
                               "is for gradients that Rondo sums in buckets: not for --algo mpi or "
                               "none, nor for --no-overlap on GPUs");
  }
  const bool of_cpus = options.shares != "equal" || separate.warmup_epochs > 0 ||
                       separate.local_steps > 0 || separate.resync_steps > 0;
  if (of_cpus && (options.device == "cuda" || options.measured_steps > 0)) {
    throw CLI::ValidationError("--shares, --warmup, --local-steps and --resync",
                               "are for training with --device cpu");
  }
  if (separate.local_steps > 0 &&
      (separate.resync_steps > 0 || !options.trace.empty() || options.wire != "exact" ||
       options.algo != "ring" || options.overlap.value_or(false) || options.bucket_kib)) {
    throw CLI::ValidationError(
        "--local-steps",
        "sums no gradients: --resync, --trace, --wire, --algo, --overlap and "
        "--bucket-kib do not go with it");
  }
}

}  // namespace lenet::systems
