#include "engine/engine.hpp"

#include <rondo/errors.hpp>

#include "base/collective_traits.hpp"
#include "base/float_state.hpp"
#include "base/write_signals.hpp"
#include "engine/by_schedule.hpp"
#include "engine/chain.hpp"
#include "reduce/by_user.hpp"

namespace rondo::detail {
namespace {

// Whether other ranks look at where the buffers are.
bool may_reach_buffers(const PlannedCall& planned) {
  return planned.algorithm == Algorithm::automatic || planned.algorithm == Algorithm::direct ||
         planned.algorithm == Algorithm::hierarchical;
}

// Open MPI writes to sockets of processes that may have ended; their SIGPIPE would end this one,
// too.
bool is_carried_by_mpi(const Wiring& wiring) {
  return wiring.links.pump != nullptr && wiring.links.pump->drives_mpi();
}

}  // namespace

Engine::Engine(Wiring& wiring)
    : wiring_(wiring),
      context_(wiring),
      ending_(context_),
      messages_(context_, ending_),
      direct_(context_),
      one_shot_(context_),
      hierarchical_(context_) {}

Engine::~Engine() {
  const WriteSignalsHeld held(is_carried_by_mpi(wiring_));
  ending_.leave();
}

void Engine::run(const PlannedCall& planned) {
  const Call& call = planned.call;
  // An all_to_all computes by numbers of links how much it keeps under way.
  const bool reduces_floats =
      reduces(call.collective) && (is_floating(call.type) || call.reduction != nullptr);
  const FloatState float_state(reduces_floats || call.collective == Collective::all_to_all);
  const WriteSignalsHeld held(is_carried_by_mpi(wiring_));
  if (is_message(call.collective)) {
    messages_.run(call, planned.timeout);
    return;
  }
  Arena::Use use;
  const ShownCall shown = enter(planned, use);
  const Signature& signature = shown.signature;
  Presence& presence = context_.presence(wiring_.rank);
  try {
    const std::optional<Algorithm> algorithm = try_direct(planned, shown);
    if (algorithm != Algorithm::hierarchical) use.end();
    if (algorithm == Algorithm::one_shot) {
      one_shot_.run(call, signature);
    } else if (algorithm == Algorithm::hierarchical) {
      hierarchical_.run(call, planned.between_hosts, shown);
    } else if (algorithm == Algorithm::chain) {
      run_by_chain(context_, call, signature);
    } else if (algorithm) {
      run_by_schedule(context_, call, *algorithm, signature);
    }
    presence.end(signature.sequence);
  } catch (const UsageError&) {
    presence.end(signature.sequence);  // on all ranks alike: the communicator goes on
    throw;
  } catch (const ThrownByProgram& by_program) {
    use.end();
    try {
      std::rethrow_exception(by_program.thrown);
    } catch (...) {
      ending_.end_with_thrown(signature, shown.buffers);
    }
  } catch (...) {
    use.end();  // so that the pages that others still write become private
    ending_.end_with_thrown(signature, shown.buffers);
  }
}

ShownCall Engine::enter(const PlannedCall& planned, Arena::Use& use) {
  ShownCall shown{planned.signature, {}};
  shown.signature.sequence = sequence_++;
  ending_.throw_if_ended(shown.signature);
  if (may_reach_buffers(planned)) {
    shown.buffers = locations_of(wiring_, planned.call);
    if (reachable(shown.buffers)) {
      use = use_of(wiring_, planned.call, shown.buffers);
      shown.buffers = locations_of(wiring_, planned.call);  // pages may have become private
    }
  }
  context_.presence(wiring_.rank).enter(shown);
  context_.begin_call(planned.call, shown.signature, planned.timeout);
  return shown;
}

std::optional<Algorithm> Engine::try_direct(const PlannedCall& planned, const ShownCall& shown) {
  if (wiring_.size == 1) return Algorithm::ring;  // which copies the input to the output
  const bool may_fall_back = planned.algorithm == Algorithm::automatic;
  if (!may_fall_back && planned.algorithm != Algorithm::direct) return planned.algorithm;
  if (direct_.run(planned.call, shown, may_fall_back)) return std::nullopt;
  if (!may_fall_back) direct_.throw_unreachable();
  context_.progress = {};  // direct touched nothing, so the call begins again
  return planned.fallback;
}

void Engine::abort(const std::string& reason) noexcept {
  wiring_.links.segment->board().raise(wiring_.rank, reason);
}

}  // namespace rondo::detail
