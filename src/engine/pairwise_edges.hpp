// Makes the edges between any two ranks, along which `pairwise` and `tree` go. Each rank makes its
// end of an edge when it first uses it.
#pragma once

#include "engine/wiring.hpp"
#include "plan/plan.hpp"

namespace rondo::detail {

// Makes this rank's ends of all edges of a plan whose algorithm uses pairwise edges, unless it has
// them. Throws TransportError (too little memory).
void open_pairwise_edges(Wiring& wiring, const Plan& plan);

}  // namespace rondo::detail
