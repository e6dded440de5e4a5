// The JSON files that the trainer writes. Both throw std::runtime_error where a file cannot be written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "options.hpp"
#include "overlap.hpp"
#include "trainer.hpp"

namespace lenet {

// What the history holds of a run, in addition to `options`.
struct Run {
  int ranks = 1;
  std::size_t bucket_bytes = 0;  // 0: Rondo does not sum the gradients, or they are on a device
  std::vector<EpochResult> results;
  std::uint64_t hash = 0;  // of the parameters
};

// The name under which a history is written before it is renamed, so that no incomplete file has the final name.
std::string beside(const std::string& history);

// {"config", "epochs", "param_hash"} to options.history.
void write_history(const Options& options, const Run& run);

// {"modes", ..., "machine", "config"} to options.json.
void write_overlap(const Options& options, int ranks, const rondo::overlap::Measured& report);

}  // namespace lenet
