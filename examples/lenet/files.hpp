// The JSON files that the trainer writes. They throw std::runtime_error where a file cannot be
// written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exchange_time.hpp"
#include "options.hpp"
#include "overlap.hpp"
#include "server/shard.hpp"
#include "trainer.hpp"

namespace lenet {

// What the history holds of a run, in addition to `options`.
struct Run {
  int ranks = 1;
  std::size_t bucket_bytes = 0;  // 0: Rondo does not sum the gradients, or they are on a device
  int epochs_before = 0;  // which an earlier run had done, whose checkpoint this one went on from
  std::vector<EpochResult> results;
  std::uint64_t hash = 0;                             // of the parameters
  std::optional<Staleness> staleness = std::nullopt;  // of all servers' updates
};

// {"config", "epochs", "param_hash"} to options.history.
void write_history(const Options& options, const Run& run);

// {"modes", ..., "machine", "config"} to options.json.
void write_overlap(const Options& options, int ranks, const rondo::overlap::Measured& report);

// {"exchange_us", "bytes", "config"} to options.json.
void write_exchange_time(const Options& options, int ranks, const ExchangeTime& measured);

}  // namespace lenet
