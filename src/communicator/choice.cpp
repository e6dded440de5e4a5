#include "communicator/choice.hpp"

#include <bit>

#include "base/collective_traits.hpp"
#include "engine/one_shot.hpp"

namespace rondo::detail {
namespace {

// Above, the rails of several owners are faster than one leader.
constexpr std::uint64_t kMostByLeaders = std::uint64_t{64} << 10U;

// Where ranks come in pairs, the whole vector travels twice more.
bool halving_pays(int ranks, std::uint64_t bytes) {
  constexpr std::uint64_t kMostInPairs = std::uint64_t{32} << 10U;
  return std::has_single_bit(static_cast<unsigned>(ranks)) || bytes <= kMostInPairs;
}

class HostChoice {
 public:
  HostChoice(const CommunicatorState& state, const Call& call)
      : engine_(state.engine), tuned_(state.tuned), call_(call) {}

  [[nodiscard]] bool can(Algorithm algorithm) const {
    if (!objection_to_kind(call_, algorithm).empty()) return false;
    if (goes_pairwise(call_.collective)) return true;
    if (engine_.size() == 1) return true;  // all do the same: they copy
    if (algorithm == Algorithm::one_shot) {
      return fits_one_shot(engine_.offers().one_shot_bytes, call_);
    }
    if (algorithm == Algorithm::direct) {
      return engine_.offers().direct && engine_.registry().reaches_any();
    }
    if (algorithm == Algorithm::halving_doubling) {
      const std::uint64_t most = engine_.offers().halving_doubling_bytes;
      return most > 0 && call_.collective == Collective::all_reduce &&
             call_.count <= most / size_of(call_.type);
    }
    if (algorithm == Algorithm::hierarchical) {
      return engine_.offers().hierarchical && sums_for_all();
    }
    if (algorithm == Algorithm::chain) return engine_.offers().chain && reduces(call_.collective);
    if (algorithm != Algorithm::recursive_doubling) return true;
    return engine_.offers().recursive_doubling && sums_for_all();
  }

  [[nodiscard]] std::string objection_to(Algorithm algorithm) const {
    const Offers& offers = engine_.offers();
    if (std::string kind = objection_to_kind(call_, algorithm); !kind.empty()) return kind;
    if (algorithm == Algorithm::halving_doubling && offers.halving_doubling_bytes == 0) {
      return "halving_doubling goes between hosts only; choose one_shot or ring";
    }
    if (algorithm == Algorithm::halving_doubling) {
      return fmt::format(
          "halving_doubling carries all_reduces of up to {} bytes between hosts; choose ring",
          offers.halving_doubling_bytes);
    }
    if (algorithm == Algorithm::hierarchical) {
      return offers.hierarchical ? "hierarchical carries all_reduces and barriers only; choose ring"
                                 : "hierarchical is for processes of which several share the "
                                   "memory of a host; choose ring";
    }
    if (algorithm == Algorithm::chain) {
      return offers.chain ? "chain carries reductions only; choose ring"
                          : "chain needs ranks in the ring in rank order; set "
                            "CommunicatorOptions::rank_order, or choose ring";
    }
    if (algorithm == Algorithm::direct) {
      return offers.direct
                 ? "direct needs buffers that all ranks can reach, and no memory was made by "
                   "Communicator::allocate; choose ring"
                 : "not all ranks share memory, so direct cannot be used; choose ring";
    }
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

  [[nodiscard]] Algorithm instead() const {
    return goes_pairwise(call_.collective) ? Algorithm::pairwise : in_order(Algorithm::ring);
  }

  [[nodiscard]] Algorithm best() const {
    if (goes_pairwise(call_.collective)) return Algorithm::pairwise;
    if (can(Algorithm::direct)) return best_for(Reach::buffers);
    return best_without_direct();
  }
  [[nodiscard]] Algorithm best_without_direct() const {
    const Offers& offers = engine_.offers();
    if (!offers.leaves_memory) return best_for(Reach::memory);
    return best_for(offers.hierarchical ? Reach::hosts : Reach::network);
  }

  // Of a hierarchical call: by what the tuning names for as many ranks as there are hosts, while the call is small.
  [[nodiscard]] Algorithm between_hosts() const {
    const int hosts = engine_.hosts();
    const std::uint64_t bytes = call_.count * size_of(call_.type);
    if (hosts == 1 || bytes > kMostByLeaders) return Algorithm::ring;
    const Algorithm tuned = tuned_.between_leaders.at(bytes);
    if (tuned == Algorithm::naive || tuned == Algorithm::recursive_doubling) return tuned;
    const bool halves = tuned == Algorithm::halving_doubling &&
                        bytes <= engine_.offers().leaders_halving_bytes &&
                        halving_pays(hosts, bytes);
    return halves ? tuned : Algorithm::ring;
  }

  // Another algorithm in place of one that would break the promise of CommunicatorOptions::rank_order.
  [[nodiscard]] Algorithm in_order(Algorithm algorithm) const {
    if (!engine_.offers().rank_order || keeps_order(algorithm) ||
        !order_matters(call_, engine_.size()))
      return algorithm;
    return keeps_order(Algorithm::hierarchical) && can(Algorithm::hierarchical)
               ? Algorithm::hierarchical
               : Algorithm::chain;
  }

 private:
  [[nodiscard]] Algorithm best_for(Reach reach) const {
    const Algorithm tuned = tuned_.at(reach, call_.count * size_of(call_.type));
    if (reach == Reach::hosts && tuned == Algorithm::hierarchical && !can(tuned)) {
      return best_for(Reach::network);
    }
    const bool reached = tuned != Algorithm::direct || reach == Reach::buffers;
    return in_order(reached && can(tuned) && pays(tuned) ? tuned : Algorithm::ring);
  }
  // On one host, hierarchical reduces in rank order too.
  [[nodiscard]] bool keeps_order(Algorithm algorithm) const {
    if (algorithm == Algorithm::hierarchical) return !engine_.offers().leaves_memory;
    return algorithm == Algorithm::one_shot || algorithm == Algorithm::direct ||
           algorithm == Algorithm::chain;
  }
  [[nodiscard]] bool sums_for_all() const {
    return call_.collective == Collective::all_reduce || call_.collective == Collective::barrier;
  }
  // Whether an algorithm that the tuning names suits this call too. The tuning is measured with all_reduces. Where each
  // rank has a chunk of its own, `naive` sends n² messages, and for a reduction to another rank than its centre it needs
  // memory.
  [[nodiscard]] bool pays(Algorithm algorithm) const {
    if (algorithm == Algorithm::halving_doubling) {
      return halving_pays(engine_.size(), call_.count * size_of(call_.type));
    }
    return algorithm != Algorithm::naive || sums_for_all() ||
           call_.collective == Collective::broadcast;
  }

  const Engine& engine_;
  const Tuned& tuned_;
  const Call& call_;
};

}  // namespace

std::string objection_to_kind(const Call& call, Algorithm algorithm) {
  const bool pairwise = algorithm == Algorithm::pairwise;
  if (goes_pairwise(call.collective)) {
    return pairwise ? "" : "only pairwise carries this call; name pairwise or no algorithm";
  }
  if (pairwise)
    return "pairwise carries messages, gather, scatter and all_to_all only; choose ring";
  if (algorithm == Algorithm::direct && call.counts != nullptr) {
    return "direct cannot carry chunks of different sizes; choose ring";
  }
  return {};
}

bool order_matters(const Call& call, int ranks) {
  if (!reduces(call.collective) || !is_floating(call.type) || call.count == 0) return false;
  const bool picks = call.op == ReduceOp::min || call.op == ReduceOp::max;  // of -0 and +0
  return ranks > 2 || picks;
}

Route settle_route(const CommunicatorState& state, const Call& call) {
  const HostChoice choice(state, call);
  const Algorithm wish = state.defaults.algorithm;
  Algorithm settled = settle_algorithm(call, state.engine.rank(), wish, choice);
  const bool named = call.options.algorithm.value_or(Algorithm::automatic) != Algorithm::automatic;
  if (!named) settled = choice.in_order(settled);  // a wish may break the promise
  // Whether the buffers of other processes can be reached is found out in the call.
  const bool finds_out =
      settled == Algorithm::direct && !named && !state.engine.registry().one_process();
  Route route{settled, settled};
  if (finds_out) {
    route.algorithm = Algorithm::automatic;
    route.or_else = wish == Algorithm::direct ? choice.instead() : choice.best_without_direct();
  }
  if (route.or_else == Algorithm::hierarchical) route.between_hosts = choice.between_hosts();
  return route;
}

}  // namespace rondo::detail
