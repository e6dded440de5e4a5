// Many simulated calls and steps, with what varies between them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bench/sim/call.hpp"
#include "bench/sim/job.hpp"
#include "bench/sim/network.hpp"

namespace rondo::sim {

// Of several runs with other random numbers.
struct Spread {
  double low = 0;
  double median = 0;
  double high = 0;
};
Spread spread_of(std::vector<double> values);

struct Question {
  Network network;
  std::vector<int> ranks;
  std::vector<Strategy> strategies;
  std::vector<std::size_t> bytes;  // of calls; where there is no job
  std::optional<Job> job;
  std::vector<std::size_t> bucket_bytes;  // of which the best is found
  double compute_spread = 0;              // standard deviation of a rank's computing time, of 1
  double steps_per_epoch = 0;
  int runs = 5;
  int calls = 1;  // that ranks make one after the other, where there is no job
};

// The answer for one strategy on so many ranks. Where it could not be simulated, `objection` says
// why.
struct Answer {
  int ranks = 0;
  Strategy strategy = Strategy::ring;
  std::string objection;
  std::size_t bytes = 0;        // of the call, or of the best bucket
  bool beyond_library = false;  // is_beyond_library()
  Spread call_us;               // of all calls of a step, where there is a job
  Spread step_us;
  Spread exposed_us;
  Spread epoch_us;  // of Question::steps_per_epoch steps
};

// In the order of ranks, strategies and bytes. Uses all cores.
std::vector<Answer> answers_to(const Question& question);

}  // namespace rondo::sim
