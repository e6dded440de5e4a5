// The device engine's end: what a rank that leaves waits for.
#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "base/deadline.hpp"
#include "base/log.hpp"
#include "cuda/engine/device_engine.hpp"

namespace rondo::detail::gpu {
namespace {

// How long a rank that leaves waits for other processes to close its memory, if they need nothing more of it.
constexpr auto kPatienceAtTheEnd = std::chrono::seconds(1);

}  // namespace

DeviceEngine::~DeviceEngine() {
  try {
    const DeviceScope scope(wiring_.device);
    if (any_call_) api::wait_for(wiring_.handles->last_call.get());
  } catch (const std::exception& error) {
    log(LogLevel::warning, "rank {}: waiting for its last call: {}", wiring_.rank, error.what());
  }
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    stopping_.notify_all();
  }
  watcher_.join();
  send_the_rest();
  leave();
}

// Sends what kernels have published for other hosts, before the pump is destroyed. Waits no longer than a call may.
void DeviceEngine::send_the_rest() {
  if (wiring_.pump == nullptr) return;
  const Clock::time_point give_up = deadline_after(timeout_);
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

// Lets this rank's device memory be freed once no other process has it open; else it stays until this process ends. So the
// process may not end before the others have taken what they still will: their kernels then write this rank's heads.
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
    const bool over = load_acquire(wiring_.control.abort_word().value) != 0 || board_.raised() ||
                      Clock::now() > must_give_up;
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
