// How much of the communication is hidden behind computation, from steps taken three times each: A alone, B with
// all communication after backprop, C with it during backprop.
#pragma once

#include <cstddef>
#include <vector>

namespace rondo::overlap {

enum class Mode : int { alone, after, during };
inline constexpr int kModes = 3;
inline constexpr const char* kModeNames[kModes] = {"alone", "after", "during"};

// Of many times: the median, and between which nine of ten lie.
struct Spread {
  double median = 0;
  double low = 0;
  double high = 0;
};
Spread spread_of(std::vector<double> times);

// Medians, of the slowest rank: from the start of backprop to the end of backprop and communication.
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

// The most that could be hidden: each bucket travels as soon as it is ready and the one before has arrived, and
// takes its share of the communication.
double most_hidden(const std::vector<ReadyBucket>& buckets, const Figures& figures);

}  // namespace rondo::overlap
