// How fast the links between hosts are: measured once while ranks join, to choose slot sizes.
#pragma once

#include <functional>

namespace rondo::detail {

struct LinkFacts {
  double latency_us = 0;    // one way, to the next rank; 0: no such link
  double bytes_per_us = 0;  // likewise
};

inline constexpr int kNoLink = -1;

// Measures this rank's link to `next` and that from `prev`, each kNoLink where shared memory carries it.
// Collective over the ranks: both ends of a link know of it.
using LinkProbe = std::function<LinkFacts(int next, int prev)>;

}  // namespace rondo::detail
