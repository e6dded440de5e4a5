// How long an all_reduce takes on a network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/sim/network.hpp"
#include "plan/cost_model.hpp"

namespace rondo::sim {

// `ring`, `hierarchical`, `halving_doubling`, `recursive_doubling` and `naive` are the library's,
// with its own schedules, slices and FIFO sizes; `hierarchical` goes between hosts as the library
// does by its model of this network. `server` is parameter servers (Network::servers):
// it is computed from the bytes on the links and the number of messages, since the library has no
// such call.
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

// So many ranks are simulated each for itself, in rings and else; above, as many stand for all: see
// events.hpp.
inline constexpr int kMostRingActors = 32;
inline constexpr int kMostActors = 1024;

// How many servers a vector of so many bytes has: never more than it has elements.
int servers_of(const Network& network, int ranks, std::size_t bytes);

// Why this strategy cannot be simulated on so many ranks; else an empty text. halving_doubling,
// recursive_doubling and hierarchical of many ranks are for powers of two.
std::string objection_to(Strategy strategy, const Network& network, int ranks);

// Whether the library itself would refuse this call: inside a host it has neither halving_doubling
// nor recursive_doubling.
bool is_beyond_library(Strategy strategy, const Network& network, int ranks);

struct Simulation {
  std::uint64_t seed = 1;  // of the jitter
  // So many calls, each rank's next after its last; the second half of them is timed. 1: a call
  // that all ranks begin at the same time.
  int calls = 1;
  // A power of two, replaces the numbers above; there are always the actors of two hosts.
  std::optional<int> most_actors = {};
};

// Until the call's end on the last rank; `bytes` of f32.
double call_us(const Network& network, Strategy strategy, int ranks, std::size_t bytes,
               const Simulation& simulation = {});

// The same by `hierarchical`, as `between` says; there are two hosts or more.
double hierarchical_us(const Network& network, int ranks, std::size_t bytes,
                       const detail::BetweenHosts& between, const Simulation& simulation = {});

}  // namespace rondo::sim
