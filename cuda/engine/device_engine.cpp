#include "cuda/engine/device_engine.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "base/collective_traits.hpp"
#include "base/deadline.hpp"
#include "base/index.hpp"
#include "base/log.hpp"
#include "cuda/api/enqueue_turn.hpp"
#include "cuda/engine/call_arguments.hpp"
#include "cuda/kernels/launch.hpp"
#include "plan/call_signature.hpp"
#include "plan/parts.hpp"

namespace rondo::detail::gpu {
namespace {

// How long a rank that leaves waits for other processes to close its memory, if they need nothing
// more of it.
constexpr auto kPatienceAtTheEnd = std::chrono::seconds(1);

}  // namespace

DeviceEngine::DeviceEngine(Wiring& host, std::chrono::milliseconds timeout, DeviceWiring& wiring)
    : host_(host),
      timeout_(timeout),
      wiring_(wiring),
      registry_(wiring_.one_device),
      borders_(static_cast<std::size_t>(wiring_.geometry.size) + 1),
      place_{wiring_.rank,
             wiring_.geometry.size,
             &wiring_.topology.ring,
             wiring_.geometry.ring,
             wiring_.geometry.off_ring,
             {wiring_.geometry.pairwise, {}},
             wiring_.pump != nullptr,
             host.links.slowest_link,
             1,
             nullptr,
             &borders_},
      watch_(host, wiring_) {}

template <class Function>
void DeviceEngine::or_end(Function&& function) {
  try {
    function();
  } catch (const CudaError& error) {
    const std::string text = fmt::format("rank {}: {}", wiring_.rank, error.what());
    static_cast<void>(watch_.raise(wiring_.rank, text));
    throw CudaError(text);
  }
}

void DeviceEngine::enqueue(const PlannedCall& planned, api::Stream stream) {
  const std::lock_guard lock(calls_);
  watch_.check();
  bool may_have_started = false;
  try {
    or_end([&] {
      const DeviceScope scope(wiring_.device);
      const bool capturing = api::is_capturing(stream);
      std::uint64_t operations = 0;
      {
        const auto turn = turn_to_enqueue(wiring_.device);
        // A rank's calls run one after the other. This also waits when the stream handle is that of
        // the last call: the handle may mean another stream in another thread, or a new stream.
        if (!capturing && any_call_) api::wait_for(wiring_.handles->last_call.get(), stream);
        may_have_started = !capturing;
        operations = start(planned, stream);
        if (capturing) return;
        api::record(wiring_.handles->last_call.get(), stream);
      }
      any_call_ = true;
      constexpr std::uint64_t kToKeepTheOrder = 2;
      wiring_.handles->ahead.enqueued(kToKeepTheOrder + operations, stream);
    });
  } catch (const CudaError&) {
    if (may_have_started) wait_for_stopped(stream);
    throw;
  }
}

// No event says when the call ends whose start failed half-way, and the destructor waits for
// events. Its kernel stops, since the communicator has ended.
void DeviceEngine::wait_for_stopped(api::Stream stream) noexcept {
  without_throwing("waiting for a call that CUDA refused half-way", [&] {
    const DeviceScope scope(wiring_.device);
    api::wait_for(stream);
  });
}

std::uint64_t DeviceEngine::start(const PlannedCall& planned, api::Stream stream) {
  const Call& call = planned.call;
  const Algorithm algorithm = planned.algorithm;
  // To itself: then `from` and `received` agree with that, as validate() has found.
  if (call.collective == Collective::sendrecv && call.to == wiring_.rank) {
    const std::size_t bytes = call.count * size_of(call.type);
    if (bytes > 0) api::copy_async(call.out, call.in, bytes, stream);
    return 1;
  }
  const CallBlocks blocks = blocks_for(call, algorithm, wiring_.rank, wiring_.geometry);
  KernelArguments arguments =
      call_arguments(planned, place_, wiring_.view, blocks, shown_buffers(call));
  if (algorithm == Algorithm::pairwise) watch_.open_edges(arguments.schedule);
  std::uint64_t operations = 0;
  if (call.counts != nullptr) {
    // call_arguments has left them in borders_.
    operations += kernels::write_words(wiring_.borders, borders_, stream);
    arguments.slicing.borders = wiring_.borders;
  }
  const Kernel kernel = kernel_for_call(call, algorithm);
  if (arguments.schedule.needs_scratch()) {
    return operations + start_with_scratch(call, kernel, blocks, arguments, stream);
  }
  kernels::start(kernel, blocks.all(), wiring_.threads, arguments, stream);
  return operations + 1;
}

// `naive` sums up the whole vector also where the output has room for only a part of it, or for
// nothing.
std::uint64_t DeviceEngine::start_with_scratch(const Call& call, const Kernel& kernel,
                                               const CallBlocks& blocks, KernelArguments arguments,
                                               api::Stream stream) {
  const std::size_t element = size_of(call.type);
  const StreamMemory scratch(wiring_.handles->scratch.get(),
                             std::max<std::size_t>(call.count * element, 1), stream);
  const std::uint64_t own = arguments.out_origin;
  arguments.out = scratch.data();
  arguments.out_origin = 0;
  kernels::start(kernel, blocks.all(), wiring_.threads, arguments, stream);
  const Range chunk = own_chunk(call, wiring_.rank, wiring_.geometry.size);
  if (call.collective == Collective::reduce_scatter && chunk.count > 0) {
    api::copy_async(call.out, scratch.data() + own * element, chunk.count * element, stream);
  }
  constexpr std::uint64_t kWithScratch = 4;
  return kWithScratch;
}

void DeviceEngine::wait(api::Stream stream) {
  or_end([&] {
    const DeviceScope scope(wiring_.device);
    if (api::is_capturing(stream)) {
      throw UsageError(
          fmt::format("rank {}: wait: the stream is being captured; wait for the graph's launch",
                      wiring_.rank));
    }
    api::wait_for(stream);
  });
  watch_.check();
}

void DeviceEngine::wait_for_calls() {
  const std::lock_guard lock(calls_);
  or_end([&] {
    const DeviceScope scope(wiring_.device);
    if (any_call_) api::wait_for(wiring_.handles->last_call.get());
  });
}

std::optional<ShownBuffers> DeviceEngine::shown_buffers(const Call& call) const {
  if (goes_pairwise(call.collective) || call.counts != nullptr) return std::nullopt;
  const DirectCall direct{call.collective, wiring_.geometry.size, call.root, call.count, 1};
  const auto find = [&](const void* data, const Range& needed) {
    if (needed.count == 0) return std::optional(ShownBuffer{});
    return registry_.find(data, needed.count * size_of(call.type));
  };
  const std::optional<ShownBuffer> in = find(call.in, direct.input(wiring_.rank));
  const std::optional<ShownBuffer> out = find(call.out, direct.output(wiring_.rank));
  if (!in || !out) return std::nullopt;
  return ShownBuffers{*in, *out};
}

DeviceEngine::~DeviceEngine() {
  try {
    const DeviceScope scope(wiring_.device);
    if (any_call_) api::wait_for(wiring_.handles->last_call.get());
  } catch (const std::exception& error) {
    log(LogLevel::warning, "rank {}: waiting for its last call: {}", wiring_.rank, error.what());
  }
  watch_.end_and_send_the_rest(timeout_);
  leave();
}

// Lets this rank's device memory be freed once no other process has it open; else it stays until
// this process ends. The process must not end while other ranks still receive, since their kernels
// write this rank's head counters.
void DeviceEngine::leave() {
  wiring_.mapped.of_others.clear();
  registry_.release_others();
  store_release(wiring_.control.left(wiring_.rank).value, 1);
  if (!wiring_.shared_by_ipc) return;
  const auto has_left = [this](int rank) {
    return load_acquire(wiring_.control.left(rank).value) != 0 || host_.waiting.peers.ended(rank);
  };
  const auto all_left = [&] {
    return std::all_of(wiring_.ranks_sharing.begin(), wiring_.ranks_sharing.end(), has_left);
  };
  const auto all_is_taken = [&] {
    const std::vector<int> waiting = ranks_that_have_slots();
    return std::all_of(waiting.begin(), waiting.end(), has_left);
  };
  const Clock::time_point now = Clock::now();
  const Clock::time_point may_give_up = now + kPatienceAtTheEnd;
  const Clock::time_point must_give_up = deadline_after(timeout_, now);
  while (!all_left()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (Clock::now() <= may_give_up) continue;
    const bool taken = all_is_taken();
    const bool over = load_acquire(wiring_.control.abort_word().value) != 0 ||
                      host_.links.segment->board().raised() || Clock::now() > must_give_up;
    if (!taken && !over) continue;
    if (!taken) {
      log(LogLevel::warning,
          "rank {}: leaves, although other processes have not received all it sent", wiring_.rank);
    }
    log(LogLevel::info, "rank {}: its device memory stays until the process ends: others hold it",
        wiring_.rank);
    wiring_.exposed->leave();
    registry_.leave_own();
    return;
  }
}

std::vector<int> DeviceEngine::ranks_that_have_slots() const {
  std::vector<int> ranks;
  without_throwing("looking for what other ranks have not received", [&] {
    const DeviceScope scope(wiring_.device);
    const RankView& view = wiring_.view;
    const auto look = [&](const SendEnd* table, int channels) {
      std::vector<SendEnd> ends(static_cast<std::size_t>(channels * view.size));
      api::copy(ends.data(), table, ends.size() * sizeof(SendEnd));
      for (std::size_t i = 0; i < ends.size(); ++i) {
        // The head of a pinned FIFO is in host memory.
        if (!wiring_.exposed->holds(ends[i].head())) continue;
        std::uint64_t released = 0;
        api::copy(&released, ends[i].head(), sizeof(released));
        if (released != ends[i].published()) {
          ranks.push_back(wiring_.topology.ring[i % static_cast<std::size_t>(view.size)]);
        }
      }
    };
    look(view.to, wiring_.geometry.channels);
    look(view.pairwise_to, wiring_.geometry.pairwise_channels);
  });
  return ranks;
}

}  // namespace rondo::detail::gpu
