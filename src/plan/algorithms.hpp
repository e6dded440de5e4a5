// What each algorithm can carry: the one table, for hosts and devices.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include <rondo/call.hpp>

#include "base/index.hpp"

namespace rondo::detail {

// An algorithm, as a communicator can use it: settled when its ranks join, and the same on all of
// them.
struct Offer {
  // The largest vector of a call; 0 if the algorithm cannot be used at all.
  std::uint64_t most_bytes = 0;
  // Why it cannot be used, where the table does not say it.
  const char* lacking = nullptr;
};
inline constexpr std::uint64_t kAnySize = std::numeric_limits<std::uint64_t>::max();

// What calls may use.
struct Offers {
  std::array<Offer, kAlgorithmCount> by_algorithm{};
  int ranks = 1;
  bool on_devices = false;
  bool rank_order = false;                         // is promised: CommunicatorOptions::rank_order
  std::uint64_t largest_element_bytes = kAnySize;  // that a slot, and a stage's part, hold
  bool leaves_memory = false;                      // not all edges of the ring are in the segment
  std::uint64_t non_temporal_bytes = 0;  // outputs from this size on use non-temporal stores

  [[nodiscard]] Offer& of(Algorithm algorithm) { return by_algorithm[Index(algorithm)]; }
  [[nodiscard]] const Offer& of(Algorithm algorithm) const {
    return by_algorithm[Index(algorithm)];
  }
  [[nodiscard]] bool has(Algorithm algorithm) const { return of(algorithm).most_bytes > 0; }
};

// Those of ranks that have nothing but the ring's edges, off-ring edges to rank 0, and pairwise
// edges.
Offers basic_offers(int ranks);

// Why an algorithm cannot carry a call.
enum class Objection : std::uint8_t {
  none,
  hosts_only,      // the call is one on devices
  pairwise_only,   // no other algorithm carries the call
  other_kind,      // the algorithm does not carry such calls
  counts,          // the chunks have sizes of their own
  large_elements,  // an element of the call's reduction does not fit a slot
  not_offered,
  buffers,  // the other ranks cannot reach them
  too_large
};
// `reaches_buffers`: whether the other ranks can reach the buffers of this rank, as far as it
// knows.
Objection objection_to(Algorithm algorithm, const Call& call, const Offers& offers,
                       bool reaches_buffers);
// Returns a sentence with the cure.
std::string text_of(Objection objection, Algorithm algorithm, const Offers& offers);

// Whether sums by this algorithm are made in the order of ranks.
bool keeps_rank_order(Algorithm algorithm, const Offers& offers);

}  // namespace rondo::detail
