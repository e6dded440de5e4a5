#include "communicator/choice.hpp"

#include "engine/one_shot.hpp"

namespace rondo::detail {
namespace {

std::string objection_to(Algorithm algorithm, const Engine& engine, const Call& call) {
  if (engine.size() == 1) return {};  // all do the same: they copy
  const Offers& offers = engine.offers();
  if (algorithm == Algorithm::recursive_doubling) {
    if (!offers.recursive_doubling) {
      return "recursive_doubling goes between hosts only; choose one_shot or ring";
    }
    const bool doubles =
        call.collective == Collective::all_reduce || call.collective == Collective::barrier;
    return doubles ? "" : "recursive_doubling carries all_reduces and barriers only; choose ring";
  }
  if (algorithm != Algorithm::one_shot || fits_one_shot(offers, call)) return {};
  if (offers.one_shot_bytes == 0) {
    return "not all ranks share memory, so one_shot cannot be used; choose ring";
  }
  return fmt::format("one_shot carries vectors of up to {} bytes among {} ranks; choose ring",
                     offers.one_shot_bytes, engine.size());
}

// Whether an algorithm that the tuning, measured with all_reduces, names also suits the call. `naive` sends n²
// messages where each rank has its own chunk, and needs extra memory to reduce to a rank other than its centre.
bool pays(const Call& call, Algorithm algorithm) {
  return algorithm != Algorithm::naive || call.collective == Collective::all_reduce ||
         call.collective == Collective::barrier || call.collective == Collective::broadcast;
}

Algorithm tuned(const CommunicatorState& state, const Call& call) {
  const Engine& engine = state.engine;
  const Carrier carrier = engine.offers().leaves_memory ? Carrier::mpi : Carrier::shm;
  const Algorithm algorithm =
      state.defaults.tuning.algorithm_for(carrier, engine.size(), call.count * size_of(call.type));
  const bool can = objection_to(algorithm, engine, call).empty();
  return can && pays(call, algorithm) ? algorithm : Algorithm::ring;
}

}  // namespace

Algorithm settle_algorithm(const CommunicatorState& state, const Call& call) {
  return settle_algorithm(
      call, state.engine.rank(), state.defaults.algorithm,
      [&](Algorithm algorithm) { return objection_to(algorithm, state.engine, call); },
      [&] { return tuned(state, call); });
}

}  // namespace rondo::detail
