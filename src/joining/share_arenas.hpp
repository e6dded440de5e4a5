// Has the ranks of a host map each other's arenas.
#pragma once

#include <vector>

#include "bootstrap/bootstrap.hpp"
#include "memory/reach.hpp"

namespace rondo::detail {

// `sharing`: the ranks that share this rank's segment. Collective over all ranks. Returns a Reach
// that reaches nothing, on all ranks, if some rank of any host has no arena or could not map that
// of another. Throws TransportError on all ranks alike.
Reach share_arenas(Bootstrap& bootstrap, const std::vector<int>& sharing);

}  // namespace rondo::detail
