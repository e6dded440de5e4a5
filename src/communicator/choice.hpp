// Which algorithm carries out a call.
#pragma once

#include <string>

#include <rondo/call.hpp>

#include "communicator/state.hpp"

namespace rondo::detail {

// What the call asks for; else the communicator's wish, where it can be; else what the tuning says.
Algorithm choose(const CommunicatorState& state, const Call& call);

// Why the algorithm that the call itself asks for cannot carry it out; empty if it can, or if it asks for none.
std::string objection_to_algorithm(const Wiring& wiring, const Call& call);

}  // namespace rondo::detail
