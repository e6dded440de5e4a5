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
  if (wiring.size == 1) return true;  // all do the same: they copy
  if (algorithm == Algorithm::one_shot) return fits_one_shot(wiring, call);
  return algorithm != Algorithm::recursive_doubling || doubles(wiring, call);
}

// The tuning is measured with all_reduces. Where each rank has a chunk of its own, `naive` sends n² messages, and
// for a reduction to another rank than its centre it needs memory.
bool pays(const Call& call, Algorithm algorithm) {
  return algorithm != Algorithm::naive || call.collective == Collective::all_reduce ||
         call.collective == Collective::barrier || call.collective == Collective::broadcast;
}

}  // namespace

Algorithm choose(const CommunicatorState& state, const Call& call) {
  const Wiring& wiring = state.engine.wiring();
  const Algorithm wanted = call.options.algorithm.value_or(state.defaults.algorithm);
  if (wanted == Algorithm::automatic) {
    const Carrier carrier = wiring.leaves_memory ? Carrier::mpi : Carrier::shm;
    const Algorithm tuned =
        state.defaults.tuning.algorithm_for(carrier, wiring.size, call.count * size_of(call.type));
    return can(wiring, call, tuned) && pays(call, tuned) ? tuned : Algorithm::ring;
  }
  // A call's own algorithm is an order, and was refused before if it cannot be.
  return can(wiring, call, wanted) ? wanted : Algorithm::ring;
}

std::string objection_to_algorithm(const Wiring& wiring, const Call& call) {
  if (!call.options.algorithm || can(wiring, call, *call.options.algorithm)) return {};
  if (call.options.algorithm == Algorithm::recursive_doubling) {
    return wiring.doubling ? "recursive_doubling carries all_reduces and barriers only; choose ring"
                           : "recursive_doubling goes between hosts only; choose one_shot or ring";
  }
  if (wiring.one_shot_bytes == 0)
    return "not all ranks share memory, so one_shot cannot be; choose ring";
  return fmt::format("one_shot carries vectors of up to {} bytes among {} ranks; choose ring",
                     wiring.one_shot_bytes, wiring.size);
}

}  // namespace rondo::detail
