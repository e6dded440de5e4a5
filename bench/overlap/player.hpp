// Plays a model's backprop and takes the time of steps without communication, with it afterwards, and during it.
#pragma once

#include <chrono>
#include <cstddef>
#include <rondo/communicator.hpp>
#include <rondo/gradient_reducer.hpp>
#include <vector>

#include "bench/overlap/model.hpp"
#include "bench/overlap/options.hpp"
#include "tools/overlap/three_modes.hpp"

namespace rondo::overlap {

// What was measured with buckets of one size.
struct Row {
  Measured measured;
  bool chosen = false;  // by the reducer
  double mark_us = 0;   // of overhead, for each parameter
};

// One rank's model: gradients in one block of memory, in forward order, and a backprop that is only time. All that
// it is given must outlive it.
class Player {
 public:
  Player(Communicator& comm, const Options& options, const Model& model);

  // Takes options.steps steps in each mode, by turns, with buckets of at most `bucket_bytes` (0: the reducer's
  // choice). Collective.
  Row measure(std::size_t bucket_bytes);

 private:
  // Returns how long marks took.
  double step_us(ThreeModes& modes) const;
  void wait_until(std::chrono::steady_clock::time_point start, double us) const;

  Communicator& comm_;
  const Options& options_;
  std::vector<double> ready_us_;
  std::vector<float> memory_;
  std::vector<Parameter> parameters_;
};

}  // namespace rondo::overlap
