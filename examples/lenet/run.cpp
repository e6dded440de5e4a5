#include "run.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <rondo/options.hpp>
#include <rondo/version.hpp>
#include <stdexcept>

#include "examples/layers/replace_file.hpp"
#include "report.hpp"

namespace lenet {

Identity identity_of(const Options& options, const Task& task) {
  return {.model = task.name,
          .seed = options.training.seed,
          .batch_size = options.training.learner.batch_size};
}

void require_writable(const std::string& file) {
  if (!file.empty() && !std::ofstream(file, std::ios::app)) {
    throw std::runtime_error("'" + file + "' cannot be written");
  }
}

std::optional<TrainingState> open_files(const Job& job) {
  if (!job.first) return std::nullopt;
  const Options& options = job.options;
  std::optional<TrainingState> start =
      read_checkpoint(options.checkpoint, job.identity, options.epochs);
  require_writable(options.trace);
  for (const std::string& file : {options.history, options.checkpoint}) {
    if (!file.empty()) require_writable(beside(file));
  }
  return start;
}

Run run_epochs(const Job& job, const Dataset& data, Learner& learner, Updates& updates,
               const std::optional<TrainingState>& start, const Hooks& hooks) {
  const Options& options = job.options;
  Trainer trainer(job.comm, data, options.training, learner, updates, start ? &*start : nullptr);
  Run run;
  run.ranks = job.comm.size();
  run.epochs_before = trainer.epochs_done();
  const Progress progress(job.first, options.epochs);
  for (int epoch = run.epochs_before + 1; epoch <= options.epochs; ++epoch) {
    run.results.push_back(trainer.run_epoch(epoch, [&](std::size_t done, std::size_t all) {
      progress.step(epoch, done, all);
      hooks.step_done();
    }));
    hooks.epoch_done();
    progress.epoch_done(epoch, run.results.back());
    if (job.first && !options.checkpoint.empty()) {
      write_checkpoint(options.checkpoint, job.identity, trainer.state());
    }
  }
  run.hash = trainer.agreed_hash();
  return run;
}

void write_trace(const Options& options, rondo::GradientReducer* reducer, Run& run) {
  if (reducer == nullptr) return;
  run.bucket_bytes = reducer->bucket_bytes();
  if (!options.trace.empty()) reducer->write_trace(options.trace);
}

nlohmann::json history_of(const Options& options, const Run& run) {
  nlohmann::json epochs = nlohmann::json::array();
  for (std::size_t i = 0; i < run.results.size(); ++i) {
    epochs.push_back({{"epoch", static_cast<std::size_t>(run.epochs_before) + i + 1},
                      {"seconds", run.results[i].seconds},
                      {"train_loss", run.results[i].train_loss},
                      {"sent_bytes", run.results[i].sent_bytes},
                      {"test_accuracy", run.results[i].test_accuracy},
                      {"evaluation_seconds", run.results[i].evaluation_seconds}});
  }
  const bool overlaps = rondo::algorithm_named(options.algo) && options.overlap.value_or(true);
  return {{"config",
           {{"ranks", run.ranks},
            {"device", options.device},
            {"epochs", options.epochs},
            {"batch_size", options.training.learner.batch_size},
            {"lr", options.training.learner.rate},
            {"seed", options.training.seed},
            {"algo", options.algo},
            {"bucket_bytes", run.bucket_bytes},
            {"overlap", overlaps},
            {"threads", options.threads},
            {"version", RONDO_VERSION}}},
          {"epochs", epochs},
          {"param_hash", fmt::format("{:016x}", run.hash)}};
}

}  // namespace lenet
