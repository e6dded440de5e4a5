#include "communicator/choice.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "engine/one_shot.hpp"

namespace rondo::detail {
namespace {

bool doubles(const Wiring& wiring, const Call& call) {
  return wiring.doubling &&
         (call.collective == Collective::all_reduce || call.collective == Collective::barrier);
}

bool can(const Wiring& wiring, const Call& call, Algorithm algorithm) {
  if (algorithm == Algorithm::one_shot) return fits_one_shot(wiring, call);
  return algorithm != Algorithm::recursive_doubling || doubles(wiring, call);
}

}  // namespace

Algorithm choose(const CommunicatorState& state, const Call& call) {
  const Wiring& wiring = state.engine.wiring();
  const Algorithm wanted = call.options.algorithm.value_or(state.defaults.algorithm);
  if (wanted == Algorithm::automatic) {
    const Carrier carrier = wiring.leaves_memory ? Carrier::mpi : Carrier::shm;
    const Algorithm tuned =
        state.defaults.tuning.algorithm_for(carrier, wiring.size, call.count * size_of(call.type));
    return can(wiring, call, tuned) ? tuned : Algorithm::ring;
  }
  // A call's own algorithm is an order, and was refused before if it cannot be.
  return can(wiring, call, wanted) ? wanted : Algorithm::ring;
}

std::string objection_to_algorithm(const Wiring& wiring, const Call& call) {
  if (!call.options.algorithm || can(wiring, call, *call.options.algorithm)) return {};
  if (call.options.algorithm == Algorithm::one_shot) {
    return fmt::format(
        "one_shot carries vectors of up to {} bytes here; 0: not all ranks share memory",
        wiring.one_shot_bytes);
  }
  return "recursive_doubling carries all_reduces and barriers between hosts only; where all ranks "
         "share "
         "memory, choose one_shot";
}

}  // namespace rondo::detail
