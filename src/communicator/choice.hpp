// Which algorithm carries out a call: settled once for each call, on hosts and devices alike.
#pragma once

#include <string>

#include <fmt/format.h>

#include <rondo/call.hpp>
#include <rondo/errors.hpp>

#include "base/names.hpp"
#include "communicator/state.hpp"
#include "engine/engine.hpp"

namespace rondo::detail {

// The algorithm that the call names must be used: UsageError if it cannot carry out the call. The communicator's is used
// if it can. `choice` is asked:
//   can(algorithm)           whether the algorithm can carry out the call
//   objection_to(algorithm)  why it cannot
//   instead()                which is used in place of the communicator's, if that cannot
//   best()                   which is used if neither names one
template <class Choice>
Algorithm settle_algorithm(const Call& call, int rank, Algorithm wish, const Choice& choice) {
  const Algorithm wanted = call.options.algorithm.value_or(wish);
  if (wanted == Algorithm::automatic) return choice.best();
  if (choice.can(wanted)) return wanted;
  if (!call.options.algorithm) return choice.instead();
  throw UsageError(
      fmt::format("rank {}: {}: {}", rank, name_of_function(call), choice.objection_to(wanted)));
}

// Why `algorithm` cannot carry the call, on hosts and on devices, if the reason is that one goes by `pairwise` and the other
// does not, or that the call has counts; else an empty text.
std::string objection_to_kind(const Call& call, Algorithm algorithm);

// Whether the bits of the call's result may depend on the order in which `ranks` ranks are added up.
bool order_matters(const Call& call, int ranks);

// For a call on host memory.
Route settle_route(const CommunicatorState& state, const Call& call);

}  // namespace rondo::detail
