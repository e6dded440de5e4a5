// One run of a trainer: the files that it reads and writes, and the epochs between them.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <rondo/communicator.hpp>
#include <rondo/gradient_reducer.hpp>
#include <vector>

#include "checkpoint.hpp"
#include "options.hpp"
#include "trainer.hpp"

namespace lenet {

struct Job {
  const Options& options;
  Identity identity;
  rondo::Communicator& comm;  // the ranks that take other samples
  bool first = false;         // whether this rank reads and writes files, and prints
};

// What came out of a run.
struct Run {
  int ranks = 1;
  std::size_t bucket_bytes = 0;  // 0: no reducer on the CPU sums the gradients
  int epochs_before = 0;  // which an earlier run had done, whose checkpoint this one went on from
  std::vector<EpochResult> results;
  std::uint64_t hash = 0;  // of the parameters
};

// What else is to be done after each step and epoch.
struct Hooks {
  std::function<void()> step_done = [] {};
  std::function<void()> epoch_done = [] {};
};

Identity identity_of(const Options& options, const Task& task);

// Throws std::runtime_error if the file cannot be written; called before the work is done. An empty
// name means no file.
void require_writable(const std::string& file);

// What the training goes on from, if this is the first rank and there is a checkpoint. Throws where
// a file cannot be written, or training cannot go on.
std::optional<TrainingState> open_files(const Job& job);

// Collective: trains from `start` on, and writes a checkpoint after each epoch.
Run run_epochs(const Job& job, const Dataset& data, Learner& learner, Updates& updates,
               const std::optional<TrainingState>& start, const Hooks& hooks = {});

// Collective. Notes in `run` the size of buckets, and writes the file of --trace, if there is a
// reducer on the CPU; null: there is none.
void write_trace(const Options& options, rondo::GradientReducer* reducer, Run& run);

// Returns {"config", "epochs", "param_hash"}, for the file of --history.
nlohmann::json history_of(const Options& options, const Run& run);

}  // namespace lenet
