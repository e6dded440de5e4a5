#include "cuda/engine/kernel_watch.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/deadline.hpp"
#include "base/index.hpp"
#include "base/log.hpp"
#include "base/threads.hpp"
#include "engine/call_text.hpp"

namespace rondo::detail::gpu {
namespace {

// How long the watcher sleeps between two looks: without a pump, with a pump, and with a pump that
// has had nothing to move for a while.
constexpr auto kLookEvery = std::chrono::milliseconds(20);
// How long two ranks show different calls of one number before that is a mismatch.
constexpr auto kDifferenceLasts = std::chrono::milliseconds(20);
constexpr auto kPumpSleep = std::chrono::microseconds(20);
constexpr auto kIdlePumpSleep = std::chrono::microseconds(500);
constexpr int kRoundsUntilIdle = 2000;

}  // namespace

KernelWatch::KernelWatch(Wiring& host, DeviceWiring& wiring)
    : host_(host), board_(host.links.segment->board()), wiring_(wiring) {
  thread_ = start_thread("watches the device", [this] { watch(); });
}

KernelWatch::~KernelWatch() { end(); }

void KernelWatch::end() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    stopping_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void KernelWatch::end_and_send_the_rest(std::chrono::milliseconds timeout) {
  end();
  if (wiring_.pump == nullptr) return;
  const Clock::time_point give_up = deadline_after(timeout);
  try {
    carry_opened();
    while (load_acquire(wiring_.control.abort_word().value) == 0 && !board_.raised() &&
           wiring_.pump->busy_peer()) {
      if (Clock::now() > give_up) {
        log(LogLevel::warning,
            "rank {}: leaves, although another host has not taken all it was sent", wiring_.rank);
        return;
      }
      if (!wiring_.pump->progress()) std::this_thread::yield();
      look_for_ended_peers();
    }
  } catch (const TransportError& error) {
    log(LogLevel::warning, "rank {}: {}", wiring_.rank, error.what());
  }
}

// The watcher gives them to the pump.
void KernelWatch::open_edges(const Schedule& schedule) {
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

void KernelWatch::carry_opened() {
  PumpEdges opened;
  {
    const std::lock_guard lock(mutex_);
    std::swap(opened, to_open_);
  }
  for (const PumpEdges::Out& edge : opened.out) wiring_.pump->carry(edge, {});
  for (const PumpEdges::In& edge : opened.in) wiring_.pump->carry(edge, {});
}

void KernelWatch::check() const {
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

bool KernelWatch::tell_hosts(int rank, const std::string& text) noexcept {
  const bool first = board_.raise(rank, text);
  if (first) log(LogLevel::warning, "{}", text);
  return first;
}

// The first reason stays. If a kernel has set the word, it has left one, which the watcher reports
// the hosts.
bool KernelWatch::raise(int rank, const std::string& text) noexcept {
  std::uint64_t& word = wiring_.control.abort_word().value;
  if (load_acquire(word) != 0) return false;
  const bool first = tell_hosts(rank, text);
  // Release pairs with the acquire of whoever reads the word: it finds the text. Kernels stop at
  // any value but 0.
  std::uint64_t expected = 0;
  std::atomic_ref(word).compare_exchange_strong(expected, static_cast<std::uint64_t>(rank) + 1,
                                                std::memory_order_release,
                                                std::memory_order_relaxed);
  return first;
}

std::string KernelWatch::reason_of(int rank) const {
  const auto& sharing = wiring_.ranks_sharing;
  if (std::find(sharing.begin(), sharing.end(), rank) == sharing.end()) return {};
  const KernelFailure* failure = failure_of(wiring_, rank);
  return failure == nullptr ? std::string() : text_of(wiring_, rank, *failure);
}

void KernelWatch::watch() {
  int idle = 0;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    lock.unlock();
    const bool moved = work();
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

bool KernelWatch::work() {
  bool moved = false;
  const std::uint64_t word = load_acquire(wiring_.control.abort_word().value);
  if (board_.raised()) {
    if (wiring_.pump != nullptr) wiring_.pump->notices().announce_abort(board_.read());
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
    look_for_mismatch();
  }
  return moved;
}

// Only a difference that lasts is a mismatch: while a call begins, two ranks may show different
// calls of the same number.
void KernelWatch::look_for_mismatch() {
  if (mismatched_.load(std::memory_order_relaxed)) return;
  const std::optional<OtherCall> seen = other_call_at_the_same_time(wiring_, wiring_.rank);
  const auto now = std::chrono::steady_clock::now();
  if (!seen || suspected_ != seen) {
    suspected_ = seen;
    suspected_since_ = now;
    return;
  }
  if (now - suspected_since_ < kDifferenceLasts) return;
  mismatch_ = text_of_mismatch(wiring_.rank, seen->mine, seen->peer, seen->theirs);
  // Before the abort word, so that who sees the abort finds the text. Taken back if another reason
  // was first.
  mismatched_.store(true, std::memory_order_release);
  if (!raise(wiring_.rank, mismatch_)) mismatched_.store(false, std::memory_order_relaxed);
}

void KernelWatch::look_for_ended_peers() {
  for (const int rank : wiring_.ranks_sharing) {
    if (!host_.waiting.peers.ended(rank)) continue;
    // It is no error if the rank has left before its process ended.
    if (load_acquire(wiring_.control.left(rank).value) != 0) continue;
    const Index index(rank);
    raise(
        wiring_.rank,
        fmt::format("rank {}: rank {} (process {}) ended without leaving the communicator. Look at "
                    "that process's own output for the reason",
                    wiring_.rank, rank, wiring_.topology.places[index].process_id));
    return;
  }
}

}  // namespace rondo::detail::gpu
