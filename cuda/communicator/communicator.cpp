#include <cstdint>
#include <exception>
#include <thread>

#include <fmt/format.h>

#include <rondo/cuda.hpp>

#include "base/owner_process.hpp"
#include "base/threads.hpp"
#include "communicator/state.hpp"
#include "cuda/communicator/register_device_memory.hpp"
#include "cuda/communicator/share.hpp"
#include "cuda/engine/device_engine.hpp"
#include "cuda/joining/wire_devices.hpp"
#include "plan/plan_call.hpp"
#include "plan/validate.hpp"

namespace rondo::cuda {

struct State {
  State(rondo::Communicator ranks, const Options& given, detail::gpu::DeviceWiring made)
      : host(std::move(ranks)),
        options(given),
        host_defaults(detail::state_of(host).defaults),
        wiring(std::move(made)),
        engine(detail::state_of(host).wiring, host_defaults.timeout, wiring) {}

  detail::OwnerProcess owner_process;
  detail::ExclusiveUse exclusive_use;
  rondo::Communicator host;
  Options options;  // for communicators that are split off
  const detail::Defaults& host_defaults;
  detail::gpu::DeviceWiring wiring;
  detail::gpu::DeviceEngine engine;  // borrows the wiring
};

namespace {

// Throws UsageError for a call that cannot be made.
detail::PlannedCall plan(const State& state, const Call& call) {
  const detail::gpu::DeviceWiring& wiring = state.wiring;
  detail::validate(call, wiring.rank, wiring.geometry.size);
  for (const void* buffer : {call.in, static_cast<const void*>(call.out)}) {
    if (reinterpret_cast<std::uintptr_t>(buffer) % size_of(call.type) != 0) {
      throw UsageError(
          fmt::format("rank {}: {}: a buffer is not aligned to its elements of {} bytes",
                      wiring.rank, name(call.collective), size_of(call.type)));
    }
  }
  detail::DeviceCallPlace place;
  place.rank = wiring.rank;
  place.offers = &wiring.offers;
  place.algorithm = state.host_defaults.algorithm;
  place.timeout = state.host_defaults.timeout;
  place.shows_buffers = state.engine.shown_buffers(call).has_value();
  place.reaches_any = state.engine.registry().reaches_any();
  place.one_device = state.engine.registry().one_device();
  return detail::plan_call(call, place);
}

}  // namespace

Communicator::Communicator(std::shared_ptr<State> state) : state_(std::move(state)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&& other) noexcept {
  if (this == &other) return *this;
  leave();
  state_ = std::move(other.state_);
  user_ = other.user_;
  return *this;
}
Communicator::~Communicator() { leave(); }

// The last holder destroys `host`, which then does the same.
void Communicator::leave() noexcept {
  detail::keep_if_inherited(state_);
  const bool reducers_stay = state_ != nullptr && user_ == nullptr && state_.use_count() > 1;
  if (reducers_stay) detail::state_of(state_->host).abort_if_unwinding();
}

int Communicator::rank() const { return state_->wiring.rank; }
int Communicator::size() const { return state_->wiring.geometry.size; }
int Communicator::device() const { return state_->wiring.device; }
int Communicator::channels() const { return state_->wiring.geometry.channels; }
const Topology& Communicator::topology() const { return state_->wiring.topology; }
Algorithm Communicator::algorithm_for(const Call& call) const {
  const detail::PlannedCall planned = plan(*state_, call);
  if (planned.algorithm != Algorithm::automatic) return planned.algorithm;
  return state_->engine.shown_buffers(call) ? Algorithm::direct : planned.fallback;
}
rondo::Communicator& Communicator::host() { return state_->host; }

void Communicator::enqueue(const Call& call, Stream stream) {
  const detail::PlannedCall planned = plan(*state_, call);
  state_->exclusive_use.refuse_if_forbidden(name(call.collective), rank(), user_);
  state_->engine.enqueue(planned, stream);
}

RegisteredBytes Communicator::allocate_bytes(std::size_t count, std::size_t element_bytes) {
  state_->exclusive_use.refuse_if_forbidden("allocate", rank(), user_);
  return RegisteredBytes(detail::gpu::register_device_memory(state_->host, state_->wiring,
                                                             state_->engine, count, element_bytes));
}

std::optional<Communicator> Communicator::split(std::optional<int> color, int key) {
  state_->exclusive_use.refuse_if_forbidden("split", rank(), user_);
  state_->engine.wait_for_calls();
  std::optional<rondo::Communicator> ranks = state_->host.split(color, key);
  std::optional<Communicator> made;
  std::exception_ptr error;
  try {
    Options options = state_->options;
    options.device = device();
    if (ranks) made = join(std::move(*ranks), options);
  } catch (...) {
    error = std::current_exception();
  }
  // The kernels of the next call must not keep a device from what other ranks still do there to
  // join.
  state_->host.barrier();
  if (error) std::rethrow_exception(error);
  return made;
}

Communicator Communicator::duplicate() { return std::move(*split(0, rank())); }

void Communicator::check() { state_->engine.check(); }
void Communicator::wait(Stream stream) { state_->engine.wait(stream); }
void Communicator::abort(const std::string& reason) { state_->engine.abort(reason); }

Communicator join(rondo::Communicator host, const Options& options) {
  try {
    detail::gpu::DeviceWiring wiring =
        detail::gpu::wire_devices(host, detail::state_of(host).wiring, options);
    return Communicator(std::make_shared<State>(std::move(host), options, std::move(wiring)));
  } catch (...) {
    // All ranks throw this error. The host communicator is destroyed here and not while the
    // exception unwinds the stack: its destructor would then abort ranks that have not seen the
    // error yet.
    {
      const rondo::Communicator quietly = std::move(host);
    }
    throw;
  }
}

std::vector<Communicator> local_group(const std::vector<int>& devices, const Options& options,
                                      const CommunicatorOptions& host_options) {
  std::vector<rondo::Communicator> hosts =
      rondo::local_group(static_cast<int>(devices.size()), host_options);
  std::vector<std::unique_ptr<Communicator>> joined(devices.size());
  std::vector<std::exception_ptr> errors(devices.size());
  std::vector<std::jthread> threads;  // which are joined also if one of them cannot be started
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto join_one = [&, i] {
      try {
        Options mine = options;
        mine.device = devices[i];
        joined[i] = std::make_unique<Communicator>(join(std::move(hosts[i]), mine));
      } catch (...) {
        errors[i] = std::current_exception();
      }
    };
    try {
      threads.push_back(detail::start_thread<std::jthread>("joins a device", join_one));
    } catch (const TransportError& error) {
      hosts[i].abort(fmt::format("rank {}: {}", i, error.what()));
      throw;
    }
  }
  threads.clear();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  std::vector<Communicator> group;
  for (const auto& rank : joined) group.push_back(std::move(*rank));
  return group;
}

int device_count() { return detail::gpu::api::device_count(); }
std::string why_no_device() { return detail::gpu::api::why_no_device(); }

}  // namespace rondo::cuda

namespace rondo::detail::gpu {

cuda::Communicator share(cuda::Communicator& communicator, const void* user) {
  cuda::Communicator another(communicator.state_);
  another.user_ = user;
  return another;
}

ExclusiveUse& exclusive_use_of(cuda::Communicator& communicator) {
  return communicator.state_->exclusive_use;
}

}  // namespace rondo::detail::gpu
