// The command line of rondo-sim.
#pragma once

#include <optional>
#include <string>

#include "bench/sim/estimate.hpp"

namespace rondo::sim {

struct Options {
  Question question;
  std::string measured;  // file for the network, if it is to be measured
  std::string json;
};

// Fills `options`; returns the program's exit status when there is nothing more to do: after
// --help, --version or an error, which it prints. Throws std::runtime_error for files that are not
// what they should be.
std::optional<int> read_command_line(int argc, char** argv, Options& options);

}  // namespace rondo::sim
