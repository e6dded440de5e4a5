// What rondo-systems prints and writes beside what rondo-lenet does. Files are written in JSON, and
// std::runtime_error is thrown where that is impossible.
#pragma once

#include <optional>
#include <vector>

#include "examples/lenet/run.hpp"
#include "exchange_time.hpp"
#include "options.hpp"
#include "overlap.hpp"
#include "server/shard.hpp"

namespace lenet::systems {

// What is known of each epoch of a run beside its EpochResult.
struct EpochExtras {
  std::vector<double> part_bytes;  // that rank 0 sent to the other parts of its model, in training
  std::vector<std::vector<double>> shares;  // of a minibatch, by rank, of 1 in all; empty: equal
};

void print(const EpochExtras& extras);

// Prints how stale the servers' updates were.
void print(const Staleness& staleness);

// Writes {"config", "epochs", "param_hash"} to options.history, and "staleness", if there were
// servers.
void write_history(const SystemOptions& options, const Run& run, const EpochExtras& extras,
                   const std::optional<Staleness>& staleness);

// Writes {"modes", ..., "machine", "config"} to options.json.
void write_overlap(const SystemOptions& options, int ranks, const rondo::overlap::Measured& report);

// Writes {"exchange_us", "bytes", "config"} to options.json.
void write_exchange_time(const SystemOptions& options, int ranks, const ExchangeTime& measured);

}  // namespace lenet::systems
