// How much of the communication is hidden behind computation, from steps in three modes: A without
// communication, B with all communication after backprop, C with communication during backprop.
#pragma once

#include <cstddef>
#include <vector>

namespace rondo::overlap {

enum class Mode : int { alone, after, during };
inline constexpr int kModes = 3;
inline constexpr const char* kModeNames[kModes] = {"alone", "after", "during"};

// The median of many times, and the ends of the range in which the middle 90 % lie.
struct Spread {
  double median = 0;
  double low = 0;
  double high = 0;
};
Spread spread_of(std::vector<double> times);

// Medians, of the slowest rank: from the start of backprop to the end of backprop and
// communication.
struct Figures {
  double alone_us = 0;
  double communication_us = 0;  // B − A
  double hidden = 0;            // H = 1 − (C − A) / (B − A), not clamped
};
Figures figures_of(double alone_us, double after_us, double during_us);

struct ReadyBucket {
  double ready_us = 0;  // since the start of backprop
  std::size_t bytes = 0;
};

// The largest share that could be hidden: each bucket is sent as soon as it is ready and the bucket
// before it has arrived, and takes a part of the communication's time in proportion to its bytes.
double most_hidden(const std::vector<ReadyBucket>& buckets, const Figures& figures);

}  // namespace rondo::overlap
