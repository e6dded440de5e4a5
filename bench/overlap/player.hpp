// Plays a model's backprop and takes the time of steps without communication, with it afterwards, and during it.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <rondo/communicator.hpp>
#include <rondo/gradient_reducer.hpp>
#include <vector>

#include "bench/overlap/figures.hpp"
#include "bench/overlap/model.hpp"
#include "bench/overlap/options.hpp"

namespace rondo::overlap {

// What was measured with buckets of one size.
struct Row {
  std::size_t bucket_bytes = 0;
  bool chosen = false;  // by the reducer
  std::size_t buckets = 0;
  std::array<Spread, kModes>
      us;  // from the start of backprop to the end of it and of communication
  Figures figures;
  double most_hidden = 0;
  double mark_us = 0;  // of overhead, for each parameter
};

// One rank's model: gradients in one block of memory, in forward order, and a backprop that is only time. All that
// it is given must outlive it.
class Player {
 public:
  Player(Communicator& comm, const Options& options, const Model& model);

  // Takes options.steps steps in each mode, in turn, with buckets of at most `bucket_bytes` (0: the reducer's
  // choice). Collective.
  Row measure(std::size_t bucket_bytes);

 private:
  double step_us(GradientReducer* reducer);
  void wait_until(std::chrono::steady_clock::time_point start, double us) const;
  [[nodiscard]] Row row(const GradientReducer& reducer,
                        const std::array<std::vector<double>, kModes>& times,
                        const std::vector<std::vector<double>>& ready,
                        const std::vector<double>& marks) const;

  Communicator& comm_;
  const Options& options_;
  std::vector<double> ready_us_;
  std::vector<float> memory_;
  std::vector<Parameter> parameters_;
  double first_mark_us_ = 0;
  double mark_us_ = 0;
};

}  // namespace rondo::overlap
