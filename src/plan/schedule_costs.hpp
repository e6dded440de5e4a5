// What the ranks of one schedule take between hosts, in ns (plan/cost_model.hpp). For each
// algorithm, a formula of the messages that follow one another and of the bytes on the busiest
// link.
#pragma once

#include <cstdint>

#include <rondo/types.hpp>

#include "plan/edge_costs.hpp"

namespace rondo::detail {

std::uint64_t by_ring(Collective collective, std::uint64_t bytes, const CostPlace& place,
                      const EdgeCosts& edges);

// `overlap`: of calls that follow one another; a call that ranks begin together is `alone`.
enum class Calls : std::uint8_t { overlap, alone };
std::uint64_t by_naive(Collective collective, std::uint64_t bytes, int ranks,
                       const EdgeCosts& edges, Calls calls);

std::uint64_t by_recursive_doubling(std::uint64_t bytes, int ranks, const EdgeCosts& edges);

std::uint64_t by_halving_doubling(std::uint64_t bytes, int ranks, int halvings,
                                  const EdgeCosts& edges);
// How many bytes a rank sends in its first message, and in all.
struct HalvedBytes {
  std::uint64_t first = 0;
  std::uint64_t all = 0;
};
HalvedBytes bytes_by_halving(std::uint64_t bytes, int ranks, int halvings);

std::uint64_t by_tree(Collective collective, std::uint64_t bytes, const CostPlace& place);

// ⌊log2 ranks⌋ and ⌈log2 ranks⌉.
int rounds_down(int ranks);
int rounds_up(int ranks);

}  // namespace rondo::detail
