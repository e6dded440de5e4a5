// The command line of rondo-overlap.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace rondo::overlap {

struct Options {
  std::string model = "resnet50";
  double compute_ms = 1000;
  bool busy = false;
  std::vector<std::size_t> bucket_kib = {0};
  int steps = 7;
  std::string wire = "exact";
  std::string json;   // file for the rows; empty: none
  int ranks = 0;      // threads
  int processes = 0;  // forked; if both are 0: the processes of mpirun
};

// Fills `options`; returns the program's exit status when there is nothing more to do: after
// --help, --version or an error, which it prints.
std::optional<int> read_command_line(int argc, char** argv, Options& options);

}  // namespace rondo::overlap
