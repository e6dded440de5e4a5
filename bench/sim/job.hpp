// How long a training step takes whose gradients are summed bucket by bucket while backprop goes
// on.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "bench/overlap/model.hpp"

namespace rondo::sim {

// A gradient, or several that were complete at the same time.
struct Gradient {
  std::size_t bytes = 0;
  double ready_us = 0;  // since the start of the step
};

struct Job {
  double computed_us = 0;           // forward pass and backprop
  std::vector<Gradient> gradients;  // in the order of backprop
};

Job job_of(const overlap::Model& model, double backward_us, double forward_us);

// From a timeline that GradientReducer::write_trace() wrote: medians of rank 0's iterations, each
// from the end of the last finish() to the last mark. The gradients are its buckets, so that the
// smaller they were, the better this is. Throws std::runtime_error.
Job read_trace(const std::string& file);

// How long a call of so many bytes takes.
using CallTime = std::function<double(std::size_t bytes)>;

struct StepTime {
  double step_us = 0;
  double call_us = 0;     // all calls
  double exposed_us = 0;  // after backprop
};

// Buckets as GradientReducer forms them, of at most `bucket_bytes`; each travels when it is ready
// and the one before it has arrived, after a small call that opens the iteration; another one
// closes it. `slowdown`: by so much the slowest rank computes slower than the job says.
StepTime step_time(const Job& job, std::size_t bucket_bytes, double slowdown, const CallTime& call);

}  // namespace rondo::sim
