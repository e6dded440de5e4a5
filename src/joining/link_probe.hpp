// Measures links between hosts, once while ranks join, to choose slot sizes.
#pragma once

#include <functional>

#include "plan/link_facts.hpp"

namespace rondo::detail {

inline constexpr int kNoLink = -1;

// Measures this rank's link to `next` and that from `prev`, each kNoLink where shared memory carries it.
// Collective over the ranks: both ends of a link know of it.
using LinkProbe = std::function<LinkFacts(int next, int prev)>;

}  // namespace rondo::detail
