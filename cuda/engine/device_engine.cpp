#include "cuda/engine/device_engine.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/collective_traits.hpp"
#include "base/deadline.hpp"
#include "base/index.hpp"
#include "base/log.hpp"
#include "base/threads.hpp"
#include "cuda/api/enqueue_turn.hpp"
#include "cuda/engine/call_arguments.hpp"
#include "cuda/kernels/launch.hpp"
#include "engine/call_text.hpp"
#include "plan/call_signature.hpp"
#include "plan/parts.hpp"

namespace rondo::detail::gpu {
namespace {

// How long the watcher sleeps between two looks: without a pump, with a pump, and with a pump that has had nothing to
// move for a while.
constexpr auto kLookEvery = std::chrono::milliseconds(20);
constexpr auto kPumpSleep = std::chrono::microseconds(20);
constexpr auto kIdlePumpSleep = std::chrono::microseconds(500);
constexpr int kRoundsUntilIdle = 2000;

}  // namespace

DeviceEngine::DeviceEngine(Wiring& host, std::chrono::milliseconds timeout, DeviceWiring wiring)
    : host_(host),
      timeout_(timeout),
      board_(host.links.segment->board()),
      wiring_(std::move(wiring)),
      registry_(wiring_.one_device),
      borders_(static_cast<std::size_t>(wiring_.geometry.size) + 1),
      place_{wiring_.rank,
             wiring_.geometry.size,
             &wiring_.topology.ring,
             wiring_.geometry.ring,
             wiring_.geometry.off_ring,
             wiring_.geometry.pairwise,
             wiring_.pump != nullptr,
             host.links.slowest_link,
             &borders_} {
  wiring_.view.message_number = device_message_number(host.links.session);
  watcher_ = start_thread("watches the device", [this] { watch(); });
}

template <class Function>
void DeviceEngine::or_end(Function&& function) {
  try {
    function();
  } catch (const CudaError& error) {
    const std::string text = fmt::format("rank {}: {}", wiring_.rank, error.what());
    raise(wiring_.rank, text);
    throw CudaError(text);
  }
}

void DeviceEngine::enqueue(const PlannedCall& planned, api::Stream stream) {
  const std::lock_guard lock(calls_);
  check();
  bool may_have_started = false;
  try {
    or_end([&] {
      const DeviceScope scope(wiring_.device);
      const bool capturing = api::is_capturing(stream);
      std::uint64_t operations = 0;
      {
        const auto turn = turn_to_enqueue(wiring_.device);
        // A rank's calls run one after the other. This also waits when the stream handle is that of the last call: the
        // handle may mean another stream in another thread, or a new stream.
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

// No event says when the call ends whose start failed half-way, and the destructor waits for events. Its kernel stops,
// since the communicator has ended.
void DeviceEngine::wait_for_stopped(api::Stream stream) noexcept {
  without_throwing("waiting for a call that CUDA refused half-way", [&] {
    const DeviceScope scope(wiring_.device);
    api::wait_for(stream);
  });
}

std::uint64_t DeviceEngine::start(const PlannedCall& planned, api::Stream stream) {
  const Call& call = planned.call;
  const Algorithm algorithm = planned.algorithm;
  if (call.collective == Collective::sendrecv && call.to == wiring_.rank) {
    const std::size_t bytes = call.count * size_of(call.type);
    if (bytes > 0) api::copy_async(call.out, call.in, bytes, stream);
    return 1;
  }
  const CallBlocks blocks = blocks_for(call, algorithm, wiring_.rank, wiring_.geometry);
  KernelArguments arguments = call_arguments(
      call, algorithm, place_, wiring_.view, blocks,
      std::min<std::chrono::milliseconds>(planned.timeout, kLongestTimeout), shown_buffers(call));
  if (algorithm == Algorithm::pairwise) open_edges(arguments.schedule);
  std::uint64_t operations = 0;
  if (call.counts != nullptr) {
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

// `naive` sums up the whole vector also where the output has room for only a part of it, or for nothing.
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

// The watcher gives them to the pump.
void DeviceEngine::open_edges(const Schedule& schedule) {
  PumpEdges& unopened = wiring_.unopened;
  if (unopened.out.empty() && unopened.in.empty()) return;
  const std::vector<int>& ring = wiring_.topology.ring;
  const auto take = [&](auto& from, auto& to, int position) {
    const int peer = ring[Index(position)];
    const auto first = std::partition(from.begin(), from.end(),
                                      [peer](const auto& edge) { return edge.peer != peer; });
    std::move(first, from.end(), std::back_inserter(to));
    from.erase(first, from.end());
  };
  const std::lock_guard lock(mutex_);
  if (schedule.collective == Collective::sendrecv) {
    take(unopened.out, to_open_.out, schedule.to);
    take(unopened.in, to_open_.in, schedule.from);
    return;
  }
  const PairwiseSchedule steps{schedule};
  for (int index = 0; index < steps.steps(); ++index) {
    const Step step = steps.step(index);
    if (step.has(kSend)) take(unopened.out, to_open_.out, step.to);
    if (step.has(kRecv)) take(unopened.in, to_open_.in, step.from);
  }
}

void DeviceEngine::carry_opened() {
  PumpEdges opened;
  {
    const std::lock_guard lock(mutex_);
    std::swap(opened, to_open_);
  }
  for (const PumpEdges::Out& edge : opened.out) wiring_.pump->carry(edge, {});
  for (const PumpEdges::In& edge : opened.in) wiring_.pump->carry(edge, {});
}

void DeviceEngine::check() const {
  if (load_acquire(wiring_.control.abort_word().value) == 0 && !board_.raised()) return;
  if (mismatched_.load(std::memory_order_acquire)) throw MismatchError(mismatch_);
  if (const KernelFailure* failure = failure_of(wiring_, wiring_.rank)) {
    const std::string text = text_of(wiring_, wiring_.rank, *failure);
    if (static_cast<FailureKind>(failure->kind) == FailureKind::mismatched) {
      throw MismatchError(text);
    }
    throw TimeoutError(text);
  }
  const std::uint64_t word = load_acquire(wiring_.control.abort_word().value);
  int culprit = word == 0 ? wiring_.rank : static_cast<int>(word) - 1;
  std::string text = reason_of(culprit);
  if (text.empty() && board_.raised()) {
    const AbortRecord record = board_.read();
    culprit = record.rank;
    text = record.text;
  }
  if (text.empty()) text = "it gave no reason";
  throw PeerError(fmt::format("rank {} cannot go on, rank {} has ended the communicator: {}",
                              wiring_.rank, culprit, text));
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
  check();
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

void DeviceEngine::abort(const std::string& reason) noexcept {
  static_cast<void>(raise(wiring_.rank, reason));
}

bool DeviceEngine::tell_hosts(int rank, const std::string& text) noexcept {
  const bool first = board_.raise(rank, text);
  if (first) log(LogLevel::warning, "{}", text);
  return first;
}

// The first reason stays. If a kernel has set the word, it has left one, which the watcher tells the hosts.
bool DeviceEngine::raise(int rank, const std::string& text) noexcept {
  std::uint64_t& word = wiring_.control.abort_word().value;
  if (load_acquire(word) != 0) return false;
  const bool first = tell_hosts(rank, text);
  // Release pairs with the acquire of whoever reads the word: it finds the text. Kernels stop at any value but 0.
  std::uint64_t expected = 0;
  std::atomic_ref(word).compare_exchange_strong(expected, static_cast<std::uint64_t>(rank) + 1,
                                                std::memory_order_release,
                                                std::memory_order_relaxed);
  return first;
}

std::string DeviceEngine::reason_of(int rank) const {
  const auto& sharing = wiring_.ranks_sharing;
  if (std::find(sharing.begin(), sharing.end(), rank) == sharing.end()) return {};
  const KernelFailure* failure = failure_of(wiring_, rank);
  return failure == nullptr ? std::string() : text_of(wiring_, rank, *failure);
}

void DeviceEngine::watch() {
  int idle = 0;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    lock.unlock();
    const bool moved = look();
    lock.lock();
    idle = moved ? 0 : idle + 1;
    if (moved) continue;
    if (wiring_.pump == nullptr) {
      stopping_.wait_for(lock, kLookEvery, [this] { return stop_; });
    } else {
      stopping_.wait_for(lock, idle < kRoundsUntilIdle ? kPumpSleep : kIdlePumpSleep,
                         [this] { return stop_; });
    }
  }
}

bool DeviceEngine::look() {
  bool moved = false;
  const std::uint64_t word = load_acquire(wiring_.control.abort_word().value);
  if (board_.raised()) {
    if (wiring_.pump != nullptr) wiring_.pump->announce_abort(board_.read());
    if (word == 0) {
      store_release(wiring_.control.abort_word().value,
                    static_cast<std::uint64_t>(board_.read().rank) + 1);
    }
    return false;
  }
  if (word != 0) {
    const std::string text = reason_of(static_cast<int>(word) - 1);
    if (!text.empty()) tell_hosts(static_cast<int>(word) - 1, text);
    return false;
  }
  try {
    if (wiring_.pump != nullptr) {
      carry_opened();
      moved = wiring_.pump->progress();
    }
  } catch (const TransportError& error) {
    raise(wiring_.rank, fmt::format("rank {}: {}", wiring_.rank, error.what()));
  }
  if (!moved) {
    look_for_ended_peers();
    look_for_other_calls();
  }
  return moved;
}

// Only a difference that lasts is a mismatch: while a call begins, two ranks may show different calls of the same
// number.
void DeviceEngine::look_for_other_calls() {
  if (mismatched_.load(std::memory_order_relaxed)) return;
  const std::optional<OtherCall> seen = other_call_at_the_same_time(wiring_, wiring_.rank);
  const auto now = std::chrono::steady_clock::now();
  if (!seen || suspected_ != seen) {
    suspected_ = seen;
    suspected_since_ = now;
    return;
  }
  if (now - suspected_since_ < kLookEvery) return;
  mismatch_ = text_of_mismatch(wiring_.rank, seen->mine, seen->peer, seen->theirs);
  mismatched_.store(true, std::memory_order_release);
  if (!raise(wiring_.rank, mismatch_)) mismatched_.store(false, std::memory_order_relaxed);
}

void DeviceEngine::look_for_ended_peers() {
  for (const int rank : wiring_.ranks_sharing) {
    if (!host_.waiting.peers.ended(rank)) continue;
    // It is no error if the rank has left before its process ended.
    if (load_acquire(wiring_.control.left(rank).value) != 0) continue;
    const auto index = static_cast<std::size_t>(rank);
    raise(
        wiring_.rank,
        fmt::format("rank {}: rank {} (process {}) ended without leaving the communicator. Look at "
                    "that process's own output for the reason",
                    wiring_.rank, rank, wiring_.topology.places[index].process_id));
    return;
  }
}

}  // namespace rondo::detail::gpu
