// Imitates a model's backprop, and times steps without communication, with communication after
// backprop, and with communication during backprop.
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
  bool chosen = false;  // whether the reducer chose the bucket size
  double mark_us = 0;   // overhead of mark_ready() for one parameter
};

// One rank's model: gradients in one block of memory, in forward order, and a backprop that only
// waits. The constructor's arguments must outlive the player.
class Player {
 public:
  Player(Communicator& comm, const Options& options, const Model& model);

  // Takes options.steps steps in each mode, by turns, with buckets of at most `bucket_bytes` (0:
  // the reducer's choice). Collective.
  Row measure(std::size_t bucket_bytes);

 private:
  // Returns how long the calls of mark_ready() took.
  double step_us(ThreeModes& modes) const;
  void wait_until(std::chrono::steady_clock::time_point start, double us) const;

  Communicator& comm_;
  const Options& options_;
  std::vector<double> ready_us_;
  std::vector<float> memory_;
  std::vector<Parameter> parameters_;
};

}  // namespace rondo::overlap
