// Makes the edges between any two ranks, along which `pairwise` goes. Each rank makes its end of an
// edge when it first uses it.
#pragma once

#include "engine/wiring.hpp"
#include "schedule/schedule.hpp"

namespace rondo::detail {

// Makes this rank's ends of all edges of the schedule, unless it has them. Throws TransportError
// (too little memory).
void open_pairwise_edges(Wiring& wiring, const Schedule& schedule);

}  // namespace rondo::detail
