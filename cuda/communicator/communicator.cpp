#include <cstdint>
#include <thread>

#include <fmt/format.h>

#include <rondo/cuda.hpp>

#include "base/owner_process.hpp"
#include "communicator/choice.hpp"
#include "communicator/state.hpp"
#include "communicator/validate.hpp"
#include "engine/device_engine.hpp"
#include "joining/wire_devices.hpp"

namespace rondo::cuda {

struct State {
  State(rondo::Communicator ranks, detail::gpu::DeviceWiring wiring)
      : host(std::move(ranks)), engine(detail::state_of(host), std::move(wiring)) {}

  detail::OwnerProcess owner_process;
  rondo::Communicator host;
  detail::gpu::DeviceEngine engine;
};

namespace {

bool fits_one_shot(const detail::gpu::DeviceWiring& wiring, const Call& call) {
  const bool kind =
      call.collective == Collective::all_reduce || call.collective == Collective::barrier;
  return kind && wiring.one_shot_bytes > 0 &&
         call.count <= wiring.one_shot_bytes / size_of(call.type);
}

std::string objection_to(Algorithm algorithm, const detail::gpu::DeviceWiring& wiring,
                         const Call& call) {
  if (algorithm == Algorithm::recursive_doubling) {
    return "recursive_doubling carries calls on host memory only";
  }
  if (algorithm != Algorithm::one_shot || fits_one_shot(wiring, call)) return {};
  return fmt::format(
      "one_shot carries all_reduces of up to {} bytes, and barriers, here; 0: not every rank "
      "reaches the memory of every other, or cuda::Options::one_shot_bytes is 0",
      wiring.one_shot_bytes);
}

Algorithm settle_algorithm(State& state, const Call& call) {
  const detail::gpu::DeviceWiring& wiring = state.engine.wiring();
  return detail::settle_algorithm(
      call, wiring.rank, detail::state_of(state.host).defaults.algorithm,
      [&](Algorithm algorithm) { return objection_to(algorithm, wiring, call); },
      [&] { return fits_one_shot(wiring, call) ? Algorithm::one_shot : Algorithm::ring; });
}

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

}  // namespace

Communicator::Communicator(std::unique_ptr<State> state) : state_(std::move(state)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&& other) noexcept {
  detail::keep_if_inherited(state_);
  state_ = std::move(other.state_);
  return *this;
}
Communicator::~Communicator() { detail::keep_if_inherited(state_); }

int Communicator::rank() const { return state_->engine.wiring().rank; }
int Communicator::size() const { return state_->engine.wiring().geometry.size; }
int Communicator::device() const { return state_->engine.wiring().device; }
int Communicator::channels() const { return state_->engine.wiring().geometry.channels; }
const Topology& Communicator::topology() const { return state_->engine.wiring().topology; }
Algorithm Communicator::algorithm_for(const Call& call) const {
  return settle_algorithm(*state_, call);
}
rondo::Communicator& Communicator::host() { return state_->host; }

void Communicator::enqueue(const Call& call, Stream stream) {
  check_buffers(*state_, call);
  const Algorithm algorithm = settle_algorithm(*state_, call);
  const auto timeout =
      call.options.timeout.value_or(detail::state_of(state_->host).defaults.timeout);
  state_->engine.enqueue(call, algorithm, timeout, stream);
}

void Communicator::check() { state_->engine.check(); }
void Communicator::wait(Stream stream) { state_->engine.wait(stream); }
void Communicator::abort(const std::string& reason) { state_->engine.abort(reason); }

Communicator join(rondo::Communicator host, const Options& options) {
  try {
    detail::gpu::DeviceWiring wiring = detail::gpu::wire_devices(host, options);
    return Communicator(std::make_unique<State>(std::move(host), std::move(wiring)));
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
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        Options mine = options;
        mine.device = devices[i];
        joined[i] = std::make_unique<Communicator>(join(std::move(hosts[i]), mine));
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
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
