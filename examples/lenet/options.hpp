// The command line of rondo-lenet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "trainer.hpp"

namespace lenet {

struct Options {
  int epochs = 10;
  TrainingOptions training;
  std::string model = "lenet";
  std::string batch_norm = "rank";  // over whose samples
  std::size_t train_samples = 0;    // the first of the data set's; 0: all
  std::size_t test_samples = 0;
  std::string algo = "ring";
  std::string device = "cpu";
  std::optional<std::string> data;  // folder of the task's files; unset: the task's own
  std::string history;
  std::string checkpoint;
  std::optional<std::size_t> bucket_kib;
  std::optional<bool> overlap;  // sum gradients during backprop; unset: where that pays
  std::string wire = "exact";
  std::string shares = "equal";
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
  std::string trace;
  int measured_steps = 0;
  std::string json;      // file for what --measure-overlap measures
  std::string settings;  // all of them, one in each line, except where this rank finds the data
  int threads = 1;
  int ranks = 0;      // threads
  int processes = 0;  // forked; if both are 0: the processes of mpirun
};

// Fills `options`; returns the program's exit status when there is nothing more to do: after
// --help, --version or an error, which it prints.
std::optional<int> read_command_line(int argc, char** argv, Options& options);

// The factor by which --slow makes `rank` of `ranks` that train slower; 1 for ranks that it does
// not name. Throws std::runtime_error if it names none of them.
double slowdown_of(const Options& options, int rank, int ranks);

}  // namespace lenet
