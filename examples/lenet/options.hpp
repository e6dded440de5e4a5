// The command line of rondo-lenet, which other trainers share and add to.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <rondo/gradients.hpp>
#include <string>
#include <utility>
#include <vector>

#include "trainer.hpp"

namespace CLI {
class App;
}

namespace lenet {

struct Options {
  int epochs = 10;
  TrainingOptions training;
  std::string algo = "ring";
  std::string device = "cpu";
  std::optional<std::string> data;  // folder of the task's files; unset: the task's own
  std::optional<std::size_t> bucket_kib;
  std::optional<bool> overlap;  // sum gradients during backprop; unset: where that pays
  std::string history;
  std::string checkpoint;
  std::string trace;
  int threads = 1;
  int ranks = 0;         // threads
  int processes = 0;     // forked; if both are 0: the processes of a launcher
  std::string settings;  // all of them, one in each line, except where this rank finds the data
};

// Fills `options`; returns the program's exit status when there is nothing more to do: after
// --help, --version or an error, which it prints.
std::optional<int> read_command_line(int argc, char** argv, Options& options);

// Adds the options of rondo-lenet.
void add_options(CLI::App& app, Options& options);
// Reads the command line, calls `check`, which may throw CLI::ValidationError, and fills
// `options.settings`. Returns as read_command_line does.
std::optional<int> parse(CLI::App& app, int argc, char** argv, Options& options,
                         const std::function<void()>& check);

// These throw CLI::ValidationError where an option would be ignored, or contradicts another.
void refuse_contradictions(const Options& options);
// `files` are options and the files that they name, which must not be the same.
void refuse_one_file_for_two(std::vector<std::pair<const char*, std::string>> files);

// Whether a GradientReducer sums the gradients: not MPI, nobody, or one call after backprop on
// GPUs.
bool by_reducer(const Options& options);
// How Rondo sums the gradients of `task`; empty where MPI or nobody does.
std::optional<rondo::GradientOptions> gradient_options(const Options& options, const Task& task);

}  // namespace lenet
