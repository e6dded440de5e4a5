#include "plan/plan_call.hpp"

#include <string>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/collective_traits.hpp"
#include "base/names.hpp"
#include "base/with_type.hpp"
#include "plan/call_signature.hpp"

namespace rondo::detail {
namespace {

// Whether the bits of the call's result may depend on the order in which `ranks` ranks are added
// up.
bool order_matters(const Call& call, int ranks) {
  if (!reduces(call.collective) || call.count == 0) return false;
  if (call.reduction != nullptr) return ranks > 1;
  if (!is_floating(call.type)) return false;
  const bool picks = call.op == ReduceOp::min || call.op == ReduceOp::max;  // of -0 and +0
  return ranks > 2 || picks;
}

bool names_algorithm(const Call& call) {
  return call.options.algorithm.value_or(Algorithm::automatic) != Algorithm::automatic;
}

// Settles what is alike for hosts and devices.
class Choice {
 public:
  Choice(const Call& call, const CallPlace& place, bool reaches_buffers)
      : call_(call), place_(place), offers_(*place.offers), reaches_buffers_(reaches_buffers) {}

  [[nodiscard]] Objection objection(Algorithm algorithm) const {
    return objection_to(algorithm, call_, offers_, reaches_buffers_);
  }
  [[nodiscard]] bool can(Algorithm algorithm) const {
    return objection(algorithm) == Objection::none;
  }
  [[nodiscard]] std::string why_not(Algorithm algorithm) const {
    return text_of(objection(algorithm), algorithm, offers_);
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw UsageError(fmt::format("rank {}: {}: {}", place_.rank, name_of_function(call_), why));
  }
  // The communicator's algorithm, unless the call asks for none in particular.
  [[nodiscard]] Algorithm preferred() const {
    return call_.options.algorithm ? Algorithm::automatic : place_.algorithm;
  }
  // The algorithm that the call names. It must be used.
  [[nodiscard]] Algorithm named() const {
    const Algorithm algorithm = *call_.options.algorithm;
    if (!can(algorithm)) refuse(why_not(algorithm));
    if (needs_order() && breaks_order(algorithm)) {
      refuse(
          fmt::format("{} does not reduce in the order of ranks, which a reduction that does "
                      "not commute needs; choose chain, or no algorithm",
                      name(algorithm)));
    }
    return algorithm;
  }
  // Whether only one order gives the result.
  [[nodiscard]] bool needs_order() const {
    return call_.reduction != nullptr && !call_.reduction->commutative;
  }
  // Whether the algorithm would give another result than the order of ranks, where that is promised
  // (CommunicatorOptions::rank_order) or needed.
  [[nodiscard]] bool breaks_order(Algorithm algorithm) const {
    return (offers_.rank_order || needs_order()) && !keeps_rank_order(algorithm, offers_) &&
           order_matters(call_, offers_.ranks);
  }
  [[nodiscard]] std::uint64_t bytes() const { return call_.count * element_bytes(call_); }

 protected:
  const Call& call_;
  const CallPlace& place_;
  const Offers& offers_;

 private:
  bool reaches_buffers_;
};

class HostChoice : public Choice {
 public:
  HostChoice(const Call& call, const HostCallPlace& place)
      : Choice(call, place, place.reaches_any), host_(place) {}

  // The communicator's algorithm is used if it can carry the call.
  [[nodiscard]] Algorithm unnamed() const {
    if (goes_pairwise(call_.collective)) return Algorithm::pairwise;
    if (preferred() != Algorithm::automatic)
      return in_order(can(preferred()) ? preferred() : Algorithm::ring);
    return can(Algorithm::direct) ? best_for(Route::buffers) : tuned_without_direct();
  }
  // Returns the algorithm to use if some rank's buffers cannot be reached. A call that names
  // `automatic` and one that names nothing may come here together, on ranks of one communicator:
  // all must choose the same.
  [[nodiscard]] Algorithm without_direct() const {
    if (place_.algorithm == Algorithm::direct) return in_order(Algorithm::ring);
    return tuned_without_direct();
  }

  [[nodiscard]] BetweenHosts between_hosts() const {
    return host_.hosts == 1 ? BetweenHosts{} : host_.tuned->between_hosts(bytes());
  }

 private:
  [[nodiscard]] Algorithm tuned_without_direct() const {
    if (!offers_.leaves_memory) return best_for(Route::memory);
    return best_for(offers_.has(Algorithm::hierarchical) ? Route::hosts : Route::network);
  }
  // Another algorithm in place of one that would break the order of ranks, or cannot carry the
  // call's reduction.
  [[nodiscard]] Algorithm in_order(Algorithm algorithm) const {
    const bool carries = call_.reduction == nullptr || can(algorithm);
    if (carries && !breaks_order(algorithm)) return algorithm;
    return keeps_rank_order(Algorithm::hierarchical, offers_) && can(Algorithm::hierarchical)
               ? Algorithm::hierarchical
               : Algorithm::chain;
  }
  [[nodiscard]] Algorithm best_for(Route route) const {
    const Algorithm tuned = host_.tuned->at(route, call_.collective, bytes());
    const bool reached = tuned != Algorithm::direct || route == Route::buffers;
    return in_order(reached && can(tuned) && pays(tuned) ? tuned : Algorithm::ring);
  }
  // Whether an algorithm that the tuning names suits this call too. A file's rules are measured
  // with all_reduces. Where each rank has a chunk of its own, `naive` sends n² messages, and for a
  // reduction to another rank than its centre it needs memory.
  [[nodiscard]] bool pays(Algorithm algorithm) const {
    return algorithm != Algorithm::naive || call_.collective == Collective::all_reduce ||
           call_.collective == Collective::barrier || call_.collective == Collective::broadcast;
  }

  const HostCallPlace& host_;
};

class DeviceChoice : public Choice {
 public:
  DeviceChoice(const Call& call, const DeviceCallPlace& place)
      : Choice(call, place, place.reaches_any && place.shows_buffers), device_(place) {}

  void refuse_what_has_no_kernel() const {
    const char* const cure = "call it on cuda::Communicator::host(), with host memory";
    if (call_.reduction != nullptr) {
      refuse(fmt::format("devices do not reduce by functions of the program; {}", cure));
    }
    if (call_.received_counts != nullptr) {
      refuse(fmt::format("all_to_all with counts is for host memory; {}", cure));
    }
    if (!is_common(call_.type)) {
      refuse(fmt::format("{} is for host memory; {}", name(call_.type), cure));
    }
    if (reduces(call_.collective) && !is_common(call_.op)) {
      refuse(fmt::format("{} is for host memory; {}", name(call_.op), cure));
    }
  }

  [[nodiscard]] Algorithm unnamed() const {
    if (goes_pairwise(call_.collective)) return Algorithm::pairwise;
    // All ranks must settle on the same, wherever their buffers are.
    if (preferred() == Algorithm::direct && may_go_direct()) return in_order(direct_or_ring());
    if (preferred() != Algorithm::automatic && can(preferred())) return in_order(preferred());
    return in_order(can(Algorithm::one_shot) ? Algorithm::one_shot : direct_or_ring());
  }

 private:
  // The same on all ranks.
  [[nodiscard]] bool may_go_direct() const {
    const Objection objection =
        objection_to(Algorithm::direct, call_, offers_, device_.reaches_any);
    return objection == Objection::none;
  }
  // `automatic` if the kernels find out whether the buffers of all ranks can be reached.
  [[nodiscard]] Algorithm direct_or_ring() const {
    if (!may_go_direct()) return Algorithm::ring;
    return device_.one_device ? Algorithm::direct : Algorithm::automatic;
  }
  // `direct` in place of an algorithm that would break the promise of
  // CommunicatorOptions::rank_order.
  [[nodiscard]] Algorithm in_order(Algorithm algorithm) const {
    if (!breaks_order(algorithm)) return algorithm;
    if (can(Algorithm::direct)) return Algorithm::direct;
    if (call_.counts != nullptr) {
      refuse(
          "CommunicatorOptions::rank_order is set, and reductions with counts do not keep it on "
          "devices; call it on cuda::Communicator::host()");
    }
    refuse(
        "CommunicatorOptions::rank_order is set, and on devices large calls keep it by direct "
        "alone; " +
        why_not(Algorithm::direct));
  }

  const DeviceCallPlace& device_;
};

PlannedCall planned(const Call& call, const CallPlace& place, Algorithm algorithm,
                    Algorithm fallback) {
  PlannedCall made;
  made.call = call;
  made.algorithm = algorithm;
  made.fallback = fallback;
  made.timeout = call.options.timeout.value_or(place.timeout);
  if (!is_message(call.collective)) {
    made.signature = signature_of(call, algorithm, place.offers->ranks);
  }
  return made;
}

}  // namespace

PlannedCall plan_call(const Call& call, const HostCallPlace& place) {
  const HostChoice choice(call, place);
  const bool named = names_algorithm(call);
  Algorithm algorithm = named ? choice.named() : choice.unnamed();
  Algorithm fallback = algorithm;
  // Whether the buffers of other processes can be reached is found out in the call.
  if (algorithm == Algorithm::direct && !named && !place.one_process) {
    algorithm = Algorithm::automatic;
    fallback = choice.without_direct();
  }
  PlannedCall made = planned(call, place, algorithm, fallback);
  if (fallback == Algorithm::hierarchical) made.between_hosts = choice.between_hosts();
  return made;
}

PlannedCall plan_call(const Call& call, const DeviceCallPlace& place) {
  const DeviceChoice choice(call, place);
  choice.refuse_what_has_no_kernel();
  const Algorithm algorithm = names_algorithm(call) ? choice.named() : choice.unnamed();
  return planned(call, place, algorithm,
                 algorithm == Algorithm::automatic ? Algorithm::ring : algorithm);
}

}  // namespace rondo::detail
