// The command line of rondo-systems: that of rondo-lenet, and more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "examples/lenet/options.hpp"
#include "separate_updates.hpp"

namespace lenet::systems {

struct SystemOptions : Options {
  std::string model = "lenet";
  std::string batch_norm = "rank";  // over whose samples
  std::size_t train_samples = 0;    // the first of the data set's; 0: all
  std::size_t test_samples = 0;
  std::string wire = "exact";
  std::string shares = "equal";
  SeparateOptions separate;
  std::string evaluate = "all";  // who evaluates: "all" ranks or "rank-0"
  std::string strategy = "all-reduce";
  int servers = 1;  // of the ranks, with a strategy that has servers
  std::optional<std::uint64_t> most_staleness;
  std::string slow;   // "RANK:FACTOR"
  std::string split;  // of a model over ranks: "columns", "rows" or "layers"; empty: none
  int parts = 2;      // into so many
  std::size_t micro_batches = 4;  // with "layers"
  int measured_exchanges = 0;     // if not 0: measures exchanges instead of training
  std::size_t exchanged_kib = 0;  // in each; 0: the model's gradients
  int measured_steps = 0;         // if not 0: measures overlap instead of training
  std::string json;               // file for what is measured
};

// Fills `options`; returns the program's exit status when there is nothing more to do: after
// --help, --version or an error, which it prints.
std::optional<int> read_command_line(int argc, char** argv, SystemOptions& options);

// How Rondo sums the gradients of `task`; empty where servers, MPI or nobody does.
std::optional<rondo::GradientOptions> gradient_options(const SystemOptions& options,
                                                       const Task& task);

// Returns the size of a gradient's element as it is sent.
std::size_t element_bytes(const SystemOptions& options);

// The learner's options on `rank` of `ranks` that train. Throws std::runtime_error if --slow names
// none of these ranks.
LearnerOptions learner_options(const SystemOptions& options, int rank, int ranks);

}  // namespace lenet::systems
