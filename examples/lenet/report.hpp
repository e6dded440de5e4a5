// What the trainer shows: a progress bar on a terminal, plain lines elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/shard.hpp"
#include "trainer.hpp"

namespace lenet {

class Report {
 public:
  // Only a visible report prints: rank 0's. `by_ring`: whether what is said of bytes holds for the
  // ring alone.
  Report(bool visible, int epochs, bool by_ring);

  void step(int epoch, std::size_t done, std::size_t all);
  void epoch_done(int epoch, const EpochResult& result);
  void finished(std::uint64_t hash, std::size_t train_samples);

  [[nodiscard]] const std::vector<EpochResult>& results() const { return results_; }

 private:
  bool visible_;
  bool terminal_;
  int epochs_;
  bool by_ring_;
  std::vector<EpochResult> results_;
};

// How stale the servers' updates were.
void print(const Staleness& staleness);

}  // namespace lenet
