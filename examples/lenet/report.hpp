// What the trainer shows: a progress bar on a terminal, plain lines elsewhere.
#pragma once

#include <cstddef>

#include "run.hpp"

namespace lenet {

class Progress {
 public:
  // Only visible progress is printed: rank 0's.
  Progress(bool visible, int epochs);

  void step(int epoch, std::size_t done, std::size_t all) const;
  void epoch_done(int epoch, const EpochResult& result) const;

 private:
  bool visible_;
  bool terminal_;
  int epochs_;
};

// How bytes are counted that are summed.
inline constexpr const char* kByRing = ", if they go by the ring";
// Prints what came out of a run. `how_sent` is printed behind the number of bytes.
void print(const Run& run, std::size_t train_samples, const char* how_sent);

}  // namespace lenet
