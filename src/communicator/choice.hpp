// Which algorithm carries out a call: settled once for each call, on hosts and devices alike.
#pragma once

#include <string>

#include <fmt/format.h>

#include <rondo/call.hpp>
#include <rondo/errors.hpp>

#include "communicator/state.hpp"

namespace rondo::detail {

// The algorithm that the call names must be used: UsageError if there is an objection to it. The communicator's is
// used unless there is an objection to it. Otherwise the best one is used.
//   objection_to(algorithm)  why it cannot carry out the call; empty if it can
//   best()                   the best algorithm for this call, of those that can carry it out
template <class Objection, class Best>
Algorithm settle_algorithm(const Call& call, int rank, Algorithm wish, Objection objection_to,
                           Best best) {
  const Algorithm wanted = call.options.algorithm.value_or(wish);
  if (wanted == Algorithm::automatic) return best();
  const std::string objection = objection_to(wanted);
  if (objection.empty()) return wanted;
  if (!call.options.algorithm) return best();
  throw UsageError(fmt::format("rank {}: {}: {}", rank, name(call.collective), objection));
}

// For a call on host memory.
Algorithm settle_algorithm(const CommunicatorState& state, const Call& call);

}  // namespace rondo::detail
