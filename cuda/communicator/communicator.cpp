#include <cstdint>
#include <exception>
#include <thread>

#include <fmt/format.h>

#include <rondo/cuda.hpp>

#include "base/collective_traits.hpp"
#include "base/owner_process.hpp"
#include "base/threads.hpp"
#include "communicator/choice.hpp"
#include "communicator/register_device_memory.hpp"
#include "communicator/share.hpp"
#include "communicator/state.hpp"
#include "communicator/validate.hpp"
#include "engine/device_engine.hpp"
#include "engine/one_shot.hpp"
#include "joining/wire_devices.hpp"

namespace rondo::cuda {

struct State {
  State(rondo::Communicator ranks, const Options& given, detail::gpu::DeviceWiring wiring)
      : host(std::move(ranks)),
        options(given),
        host_defaults(detail::state_of(host).defaults),
        rank_order(detail::state_of(host).engine.offers().rank_order),
        engine(detail::state_of(host).engine, host_defaults.timeout, std::move(wiring)) {}

  detail::OwnerProcess owner_process;
  detail::ExclusiveUse exclusive_use;
  rondo::Communicator host;
  Options options;  // for communicators that are split off
  const detail::Defaults& host_defaults;
  bool rank_order;  // is promised: CommunicatorOptions::rank_order
  detail::gpu::DeviceEngine engine;
};

namespace {

class DeviceChoice {
 public:
  DeviceChoice(const State& state, const Call& call)
      : engine_(state.engine),
        wiring_(state.engine.wiring()),
        rank_order_(state.rank_order),
        call_(call) {}

  [[nodiscard]] bool can(Algorithm algorithm) const {
    if (on_hosts_only(algorithm)) return false;
    if (!detail::objection_to_kind(call_, algorithm).empty()) return false;
    if (algorithm == Algorithm::direct) return may_go_direct() && engine_.shown_buffers(call_);
    if (algorithm != Algorithm::one_shot) return true;
    const bool sums =
        call_.collective == Collective::all_reduce || call_.collective == Collective::barrier;
    return sums && detail::fits_one_shot(wiring_.one_shot_bytes, call_);
  }
  [[nodiscard]] std::string objection_to(Algorithm algorithm) const {
    if (on_hosts_only(algorithm)) {
      return fmt::format("{} carries calls on host memory only", name(algorithm));
    }
    if (std::string kind = detail::objection_to_kind(call_, algorithm); !kind.empty()) return kind;
    if (algorithm == Algorithm::direct) {
      if (!wiring_.all_reached) {
        return "direct cannot be used, since not every rank reaches the memory of every other; "
               "choose ring";
      }
      if (!wiring_.atomics_everywhere) {
        return "direct cannot be used, since some devices are joined by PCIe, which carries no "
               "atomic operations between them; choose ring";
      }
      return "direct needs buffers that all ranks reach: made by cuda::Communicator::allocate, "
             "unless all ranks are on one device in one process";
    }
    return fmt::format(
        "one_shot carries all_reduces of up to {} bytes, and barriers, here; 0: not every rank "
        "reaches the memory of every other, or cuda::Options::one_shot_bytes is 0",
        wiring_.one_shot_bytes);
  }
  [[nodiscard]] Algorithm instead() const { return best(); }
  [[nodiscard]] Algorithm best() const {
    if (detail::goes_pairwise(call_.collective)) return Algorithm::pairwise;
    return can(Algorithm::one_shot) ? Algorithm::one_shot : direct_or_ring();
  }

  // The same on all ranks.
  [[nodiscard]] bool may_go_direct() const {
    return wiring_.all_reached && wiring_.atomics_everywhere && engine_.registry().reaches_any() &&
           detail::objection_to_kind(call_, Algorithm::direct).empty();
  }
  // `automatic` if the kernels find out whether the buffers of all ranks can be reached.
  [[nodiscard]] Algorithm direct_or_ring() const {
    if (!may_go_direct()) return Algorithm::ring;
    return engine_.registry().one_device() ? Algorithm::direct : Algorithm::automatic;
  }
  // Another algorithm in place of one that would break the promise of CommunicatorOptions::rank_order.
  [[nodiscard]] Algorithm in_order(Algorithm algorithm) const {
    if (!rank_order_ || algorithm == Algorithm::one_shot || algorithm == Algorithm::direct ||
        !detail::order_matters(call_, wiring_.geometry.size)) {
      return algorithm;
    }
    if (can(Algorithm::direct)) return Algorithm::direct;
    if (call_.counts != nullptr) {
      throw UsageError(
          fmt::format("rank {}: {}: CommunicatorOptions::rank_order is set, and reductions with "
                      "counts do not keep it on devices; call it on cuda::Communicator::host()",
                      wiring_.rank, name(call_.collective)));
    }
    throw UsageError(
        fmt::format("rank {}: {}: CommunicatorOptions::rank_order is set, and on devices large "
                    "calls keep it by "
                    "direct alone; {}",
                    wiring_.rank, name(call_.collective), objection_to(Algorithm::direct)));
  }

 private:
  static bool on_hosts_only(Algorithm algorithm) {
    return algorithm == Algorithm::recursive_doubling || algorithm == Algorithm::chain ||
           algorithm == Algorithm::halving_doubling || algorithm == Algorithm::hierarchical;
  }

  const detail::gpu::DeviceEngine& engine_;
  const detail::gpu::DeviceWiring& wiring_;
  bool rank_order_;
  const Call& call_;
};

void check_buffers(const State& state, const Call& call) {
  const detail::gpu::DeviceWiring& wiring = state.engine.wiring();
  detail::validate(call, wiring.rank, wiring.geometry.size);
  for (const void* buffer : {call.in, static_cast<const void*>(call.out)}) {
    if (reinterpret_cast<std::uintptr_t>(buffer) % size_of(call.type) != 0) {
      throw UsageError(
          fmt::format("rank {}: {}: a buffer is not aligned to its elements of {} bytes",
                      wiring.rank, name(call.collective), size_of(call.type)));
    }
  }
}

Algorithm check_and_settle(const State& state, const Call& call) {
  check_buffers(state, call);
  const DeviceChoice choice(state, call);
  const Algorithm wish = state.host_defaults.algorithm;
  const bool named = call.options.algorithm.value_or(Algorithm::automatic) != Algorithm::automatic;
  // All ranks must settle on the same, wherever their buffers are.
  if (!call.options.algorithm && wish == Algorithm::direct && choice.may_go_direct()) {
    return choice.in_order(choice.direct_or_ring());
  }
  const Algorithm settled =
      detail::settle_algorithm(call, state.engine.wiring().rank, wish, choice);
  return named ? settled : choice.in_order(settled);
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

int Communicator::rank() const { return state_->engine.wiring().rank; }
int Communicator::size() const { return state_->engine.wiring().geometry.size; }
int Communicator::device() const { return state_->engine.wiring().device; }
int Communicator::channels() const { return state_->engine.wiring().geometry.channels; }
const Topology& Communicator::topology() const { return state_->engine.wiring().topology; }
Algorithm Communicator::algorithm_for(const Call& call) const {
  const Algorithm settled = check_and_settle(*state_, call);
  if (settled != Algorithm::automatic) return settled;
  return state_->engine.shown_buffers(call) ? Algorithm::direct : Algorithm::ring;
}
rondo::Communicator& Communicator::host() { return state_->host; }

void Communicator::enqueue(const Call& call, Stream stream) {
  const Algorithm algorithm = check_and_settle(*state_, call);
  state_->exclusive_use.refuse_if_forbidden(name(call.collective), rank(), user_);
  const auto timeout = call.options.timeout.value_or(state_->host_defaults.timeout);
  state_->engine.enqueue(call, algorithm, timeout, stream);
}

RegisteredBytes Communicator::allocate_bytes(std::size_t count, std::size_t element_bytes) {
  state_->exclusive_use.refuse_if_forbidden("allocate", rank(), user_);
  return RegisteredBytes(
      detail::gpu::register_device_memory(state_->host, state_->engine, count, element_bytes));
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
  // The kernels of the next call must not keep a device from what other ranks still do there to join.
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
        detail::gpu::wire_devices(host, detail::state_of(host).engine, options);
    return Communicator(std::make_shared<State>(std::move(host), options, std::move(wiring)));
  } catch (...) {
    // All ranks throw this error. The host communicator is destroyed here and not while the exception unwinds the
    // stack: its destructor would then abort ranks that have not seen the error yet.
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
