#include <rondo/communicator.hpp>

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "base/giving_up.hpp"
#include "base/names.hpp"
#include "base/owner_process.hpp"
#include "bootstrap/meeting_point.hpp"
#include "bootstrap/release.hpp"
#include "bootstrap/socket_bootstrap.hpp"
#include "communicator/join.hpp"
#include "communicator/plan_on_host.hpp"
#include "communicator/prepared_call.hpp"
#include "communicator/state.hpp"
#include "communicator/within_function.hpp"
#include "plan/plan_call.hpp"
#include "plan/validate.hpp"

namespace rondo {
namespace detail {
namespace {

void refuse_if(const Call& call, int rank, const std::string& objection) {
  if (objection.empty()) return;
  throw UsageError(fmt::format("rank {}: {}: {}", rank, detail::name_of_function(call), objection));
}

std::string objection_to_calls_here(const CommunicatorState& state) {
  const auto& pump = state.wiring.links.pump;
  return pump == nullptr ? std::string() : pump->objection_to_this_thread();
}

PlannedCall plan_checked(const CommunicatorState& state, const Call& call) {
  const Wiring& wiring = state.wiring;
  HostCallPlace place;
  place.rank = wiring.rank;
  place.offers = &wiring.offers;
  place.algorithm = state.defaults.algorithm;
  place.timeout = state.defaults.timeout;
  place.tuned = &state.tuned;
  place.hosts = wiring.links.hosts;
  place.reaches_any = wiring.links.reach.reaches_any();
  place.one_process = wiring.links.reach.one_process();
  return plan_call(call, place);
}

}  // namespace

PlannedCall plan_on_host(const CommunicatorState& state, const Call& call) {
  validate(call, state.wiring.rank, state.wiring.size);
  return plan_checked(state, call);
}

PlannedCall plan_packed(const CommunicatorState& state, const Call& call) {
  validate_without_buffers(call, state.wiring.rank, state.wiring.size);
  return plan_checked(state, call);
}

void prepare_to_run(CommunicatorState& state, const Call& call, const void* user) {
  state.refuse_if_held(name_of_function(call), user);
  refuse_if(call, state.wiring.rank, objection_to_calls_here(state));
}

Work enqueue(CommunicatorState& state, const Call& call, const void* user,
             std::function<void()> run) {
  state.refuse_if_held(name_of_function(call), user);
  const int rank = state.wiring.rank;
  if (const auto& pump = state.wiring.links.pump) {
    refuse_if(call, rank, pump->objection_to_progress_thread());
  }
  try {
    return Work(state.queue.run_async(std::move(run)));
  } catch (const TransportError& error) {  // the other ranks may wait for this call
    const std::string text =
        fmt::format("rank {}: {}: {}", rank, name_of_function(call), error.what());
    state.engine.abort(text);
    throw TransportError(text);
  }
}

Defaults resolve_defaults(const CommunicatorOptions& options) {
  Defaults defaults;
  defaults.timeout =
      options.timeout ? *options.timeout : environment_timeout().value_or(defaults.timeout);
  defaults.algorithm = options.algorithm ? *options.algorithm
                                         : environment_algorithm().value_or(Algorithm::automatic);
  if (defaults.timeout.count() <= 0) {
    throw UsageError(fmt::format("CommunicatorOptions::timeout is {} ms; it must be above 0",
                                 defaults.timeout.count()));
  }
  if (static_cast<int>(defaults.algorithm) >= kAlgorithmCount) {
    throw UsageError("CommunicatorOptions::algorithm is not an Algorithm");
  }
  return defaults;
}

}  // namespace detail

void Calls::require_size(const char* call, const char* which, std::size_t actual,
                         std::size_t expected) const {
  if (actual == expected) return;
  throw UsageError(fmt::format("rank {}: {}: `{}` has {} elements, it must have {}", rank, call,
                               which, actual, expected));
}

Communicator::Communicator(std::shared_ptr<detail::CommunicatorState> state)
    : state_(std::move(state)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&& other) noexcept {
  if (this == &other) return *this;
  leave();
  state_ = std::move(other.state_);
  user_ = other.user_;
  return *this;
}
Communicator::~Communicator() { leave(); }

void Communicator::leave() noexcept {
  detail::keep_if_inherited(state_);
  const bool leaves = state_ != nullptr && (user_ == nullptr || state_.use_count() == 1);
  if (leaves) state_->abort_if_unwinding();
}

int Communicator::rank() const { return state_->wiring.rank; }
int Communicator::size() const { return state_->wiring.size; }
const Topology& Communicator::topology() const { return state_->wiring.topology; }

Algorithm Communicator::algorithm_for(const Call& call) const {
  const detail::PlannedCall planned = detail::plan_on_host(*state_, call);
  const bool direct =
      planned.algorithm == Algorithm::automatic || planned.algorithm == Algorithm::direct;
  if (!direct) return planned.algorithm;
  if (size() == 1 || detail::shows_buffers(*this, call)) return Algorithm::direct;
  if (planned.algorithm == Algorithm::automatic) return planned.fallback;
  const detail::Offers& offers = state_->wiring.offers;
  detail::refuse_if(call, rank(), text_of(detail::Objection::buffers, Algorithm::direct, offers));
  return Algorithm::direct;
}

void Communicator::run(const Call& made) {
  const std::optional<Call> part = detail::WithinFunction::as_part(made);
  const Call& call = part ? *part : made;
  const detail::PlannedCall planned = detail::plan_on_host(*state_, call);
  detail::prepare_to_run(*state_, call, user_);
  state_->queue.run([&planned, &engine = state_->engine] { engine.run(planned); });
}

Work Communicator::run_async(const Call& call) {
  detail::PlannedCall planned = detail::plan_on_host(*state_, call);
  return detail::enqueue(*state_, call, user_,
                         [&engine = state_->engine, planned,
                          arguments = detail::CallArguments(call, size())]() mutable {
                           arguments.lend_to(planned.call);
                           engine.run(planned);
                         });
}

void Communicator::abort(const std::string& reason) { state_->engine.abort(reason); }

bool Communicator::ended() const { return state_->wiring.links.segment->board().raised(); }

detail::CommunicatorState& detail::state_of(const Communicator& communicator) {
  return *communicator.state_;
}

Communicator detail::share(Communicator& communicator, const void* user) {
  Communicator another(communicator.state_);
  another.user_ = user;
  return another;
}

std::string detail::objection_to_calls_here(const Communicator& communicator) {
  return objection_to_calls_here(state_of(communicator));
}

bool detail::shows_buffers(const Communicator& communicator, const Call& call) {
  return reachable(locations_of(state_of(communicator).wiring, call));
}

Communicator from_socket(const std::string& path, int rank, int size,
                         const CommunicatorOptions& options) {
  detail::Joining joining = detail::prepare_to_join(options, rank);
  if (options.carrier == CarrierChoice::mpi || options.carrier == CarrierChoice::ucx) {
    joining.refusal =
        "from_socket: processes that meet at a socket are joined by shared memory alone";
  }
  // There is nothing to fall back to.
  CommunicatorOptions memory_only = options;
  memory_only.carrier = CarrierChoice::shm;
  return detail::unless_given_up(options.give_up_if, [&] {
    detail::SocketBootstrap bootstrap(detail::meet_at_path(path), rank, size,
                                      joining.defaults.timeout);
    detail::require_one_release(bootstrap);
    return Communicator(detail::join(bootstrap, memory_only, std::move(joining), {}));
  });
}

std::vector<Communicator> local_group(int size, const CommunicatorOptions& options) {
  detail::Defaults defaults = detail::resolve_defaults(options);
  defaults.tuning = detail::load_tuning();
  std::vector<Communicator> group;
  for (detail::Wiring& wiring : detail::wire_local_group(size, options)) {
    group.emplace_back(
        std::make_unique<detail::CommunicatorState>(std::move(wiring), defaults, options));
  }
  return group;
}

}  // namespace rondo
