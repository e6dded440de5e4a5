#include "communicator/choice.hpp"

#include "engine/one_shot.hpp"

namespace rondo::detail {
namespace {

class HostChoice {
 public:
  HostChoice(const CommunicatorState& state, const Call& call)
      : engine_(state.engine), tuning_(state.defaults.tuning), call_(call) {}

  [[nodiscard]] bool can(Algorithm algorithm) const {
    if (engine_.size() == 1) return true;  // all do the same: they copy
    if (algorithm == Algorithm::one_shot) {
      return fits_one_shot(engine_.offers().one_shot_bytes, call_);
    }
    if (algorithm != Algorithm::recursive_doubling) return true;
    return engine_.offers().recursive_doubling && sums_for_all();
  }

  [[nodiscard]] std::string objection_to(Algorithm algorithm) const {
    const Offers& offers = engine_.offers();
    if (algorithm == Algorithm::recursive_doubling) {
      return offers.recursive_doubling
                 ? "recursive_doubling carries all_reduces and barriers only; choose ring"
                 : "recursive_doubling goes between hosts only; choose one_shot or ring";
    }
    if (offers.one_shot_bytes == 0) {
      return "not all ranks share memory, so one_shot cannot be used; choose ring";
    }
    return fmt::format("one_shot carries vectors of up to {} bytes among {} ranks; choose ring",
                       offers.one_shot_bytes, engine_.size());
  }

  [[nodiscard]] static Algorithm instead() { return Algorithm::ring; }

  [[nodiscard]] Algorithm best() const {
    const Carrier carrier = engine_.offers().leaves_memory ? Carrier::mpi : Carrier::shm;
    const Algorithm tuned =
        tuning_.algorithm_for(carrier, engine_.size(), call_.count * size_of(call_.type));
    return can(tuned) && pays(tuned) ? tuned : Algorithm::ring;
  }

 private:
  [[nodiscard]] bool sums_for_all() const {
    return call_.collective == Collective::all_reduce || call_.collective == Collective::barrier;
  }
  // Whether an algorithm that the tuning names suits this call too. The tuning is measured with all_reduces. Where each rank has a chunk of its own, `naive` sends n² messages, and
  // for a reduction to another rank than its centre it needs memory.
  [[nodiscard]] bool pays(Algorithm algorithm) const {
    return algorithm != Algorithm::naive || sums_for_all() ||
           call_.collective == Collective::broadcast;
  }

  const Engine& engine_;
  const Tuning& tuning_;
  const Call& call_;
};

}  // namespace

Algorithm settle_algorithm(const CommunicatorState& state, const Call& call) {
  return settle_algorithm(call, state.engine.rank(), state.defaults.algorithm,
                          HostChoice(state, call));
}

}  // namespace rondo::detail
