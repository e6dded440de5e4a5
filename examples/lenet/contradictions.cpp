#include "contradictions.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <rondo/options.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "examples/layers/replace_file.hpp"
#include "tasks.hpp"
#include "tools/launch/launch.hpp"

namespace lenet {
namespace {

// Throws CLI::ValidationError.
void refuse_contradictions_of_strategy(const Options& options) {
  const TrainingOptions& training = options.training;
  const bool served = options.strategy != "all-reduce";
  if (served && (options.device == "cuda" || options.measured_steps > 0 || options.algo != "ring" ||
                 options.wire != "exact" || !options.trace.empty() || training.local_steps > 0 ||
                 training.resync_steps > 0 || training.measure_shares || options.overlap ||
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
      !training.shares.empty() || training.measure_shares || !options.slow.empty() ||
      !options.checkpoint.empty() || training.warmup_epochs > 0 || training.local_steps > 0 ||
      training.resync_steps > 0 || training.passes > 1 || options.wire != "exact" ||
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
      (!training.shares.empty() || options.measured_exchanges > 0)) {
    throw CLI::ValidationError("--strategy",
                               "server-async has no shares, since whoever is free takes the next "
                               "part of a minibatch, and nothing for --measure-exchange");
  }
  if ((!options.slow.empty() || options.measured_exchanges > 0) &&
      (options.device == "cuda" || options.measured_steps > 0)) {
    throw CLI::ValidationError("--slow and --measure-exchange", "are for --device cpu");
  }
}

// Where a folder cannot be read, only the names count.
std::filesystem::path real_path(const std::string& file) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(file, error);
  return error ? std::filesystem::path(file).lexically_normal() : real;
}

bool same_file(const std::string& a, const std::string& b) { return real_path(a) == real_path(b); }

// Throws CLI::ValidationError.
void refuse_one_file_for_two(const Options& options) {
  std::vector<std::pair<const char*, std::string>> files = {{"--history", options.history},
                                                            {"--checkpoint", options.checkpoint},
                                                            {"--trace", options.trace},
                                                            {"--json", options.json}};
  std::erase_if(files, [](const auto& file) { return file.second.empty(); });
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool same = same_file(files[i].second, files[j].second) ||
                        same_file(files[i].second, beside(files[j].second)) ||
                        same_file(beside(files[i].second), files[j].second);
      if (!same) continue;
      throw CLI::ValidationError(
          files[i].first, fmt::format("is the file of {}, too: name another", files[j].first));
    }
  }
}

}  // namespace

void refuse_contradictions(const Options& options) {
  refuse_one_file_for_two(options);
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
  const TrainingOptions& training = options.training;
  if (options.batch_norm == "all" && training.local_steps > 0) {
    throw CLI::ValidationError("--batch-norm",
                               "all is not for --local-steps, where each rank has parameters of "
                               "its own, whose statistics have no meaning together");
  }
  if (!options.split.empty() &&
      (options.model != "lenet" || options.device == "cuda" || options.strategy != "all-reduce" ||
       options.algo == "mpi" || options.measured_steps > 0 || options.measured_exchanges > 0 ||
       !options.trace.empty() || !options.checkpoint.empty() || !options.slow.empty() ||
       training.measure_shares)) {
    throw CLI::ValidationError("--split",
                               "is for LeNet on the CPU, and not for --strategy, --algo mpi, "
                               "--trace, --checkpoint, --slow, --shares auto, --measure-overlap "
                               "and --measure-exchange");
  }
  if (options.micro_batches != Options().micro_batches && options.split != "layers") {
    throw CLI::ValidationError("--micro-batches", "is for --split layers");
  }
  if (options.split == "layers" && options.parts != 2) {
    throw CLI::ValidationError("--parts", "must be 2 with --split layers");
  }
  const bool without_mpi = !rondo::launch::starts_mpi(options.ranks, options.processes);
  if (options.algo == "mpi" && (without_mpi || options.device == "cuda")) {
    throw CLI::ValidationError("--algo", "mpi works only with --device cpu and under mpirun");
  }
  if (options.device == "cuda" && (training.passes > 1 || !options.trace.empty())) {
    throw CLI::ValidationError("--device", "must be cpu with --accumulate or --trace");
  }
  if (options.measured_steps > 0 &&
      (options.device == "cuda" || !rondo::algorithm_named(options.algo))) {
    throw CLI::ValidationError("--measure-overlap", "is for Rondo's algorithms on the CPU");
  }
  // Only a reducer has a timeline and buckets, and narrows gradients.
  const bool by_reducer = rondo::algorithm_named(options.algo) &&
                          (options.device == "cpu" || options.overlap.value_or(true));
  if (!by_reducer && (!options.trace.empty() || options.wire != "exact" || options.bucket_kib ||
                      options.overlap.value_or(false))) {
    throw CLI::ValidationError(
        "--trace, --wire, --bucket-kib and --overlap",
        "are for gradients that Rondo sums in buckets: not for --algo mpi or "
        "none, nor for --no-overlap on GPUs");
  }
  const bool of_cpus = options.shares != "equal" || training.warmup_epochs > 0 ||
                       training.local_steps > 0 || training.resync_steps > 0;
  if (of_cpus && (options.device == "cuda" || options.measured_steps > 0)) {
    throw CLI::ValidationError("--shares, --warmup, --local-steps and --resync",
                               "are for training with --device cpu");
  }
  if (training.local_steps > 0 &&
      (training.resync_steps > 0 || !options.trace.empty() || options.wire != "exact" ||
       options.algo != "ring" || options.overlap.value_or(false) || options.bucket_kib)) {
    throw CLI::ValidationError(
        "--local-steps",
        "sums no gradients: --resync, --trace, --wire, --algo, --overlap and "
        "--bucket-kib do not go with it");
  }
}

}  // namespace lenet
