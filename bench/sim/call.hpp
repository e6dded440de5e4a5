// How long an all_reduce takes on a network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/sim/network.hpp"

namespace rondo::sim {

// `ring`, `hierarchical`, `halving_doubling`, `recursive_doubling` and `naive` are the library's, with its own schedules, slices and
// FIFO sizes. `server` is parameter servers (Network::servers): it is computed from the bytes on the links and the number of messages,
// since the library has no such call.
enum class Strategy : std::uint8_t {
  ring,
  hierarchical,
  halving_doubling,
  recursive_doubling,
  naive,
  server
};
inline constexpr int kStrategies = 6;

std::string name(Strategy strategy);
// Throws std::runtime_error.
Strategy strategy_named(const std::string& name);

// So many ranks are simulated each for itself, in rings and else; above, as many stand for all: see events.hpp.
inline constexpr int kMostRingActors = 32;
inline constexpr int kMostActors = 1024;

// How many servers a vector of so many bytes has: never more than it has elements.
int servers_of(const Network& network, int ranks, std::size_t bytes);

// Why this strategy cannot be simulated on so many ranks; else an empty text. halving_doubling and recursive_doubling of many ranks
// are for powers of two.
std::string objection_to(Strategy strategy, const Network& network, int ranks);

// From the call on all ranks, at the same time, to its end on the last; `bytes` of f32. `seed`: of the jitter. `most_actors`, a power of two,
// replaces these numbers; there are always those of two hosts.
double call_us(const Network& network, Strategy strategy, int ranks, std::size_t bytes,
               std::uint64_t seed, std::optional<int> most_actors = std::nullopt);

}  // namespace rondo::sim
