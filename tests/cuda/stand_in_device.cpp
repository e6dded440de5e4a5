#include "tests/cuda/stand_in_device.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/cuda/stand_in.hpp"

namespace rondo::test {

// Neither map's entries are ever destroyed: threads of streams that nobody destroyed outlive
// main().
StandInDevice& StandInDevice::number(int device) {
  static std::mutex mutex;
  static auto* devices = new std::map<int, StandInDevice>;
  const std::lock_guard lock(mutex);
  return (*devices)[device];
}

HardwareQueue* HardwareQueue::next_of(int device) {
  if (!stand_in().modes.shared_queues) return nullptr;
  constexpr std::size_t queues_of_a_device = 32;
  struct Queues {
    std::array<HardwareQueue, queues_of_a_device> all;
    std::size_t next = 0;
  };
  static std::mutex mutex;
  static auto* of_devices = new std::map<int, Queues>;
  const char* said = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const std::size_t connections =
      std::clamp<std::size_t>(said == nullptr ? 8 : std::stoul(said), 1, queues_of_a_device);
  const std::lock_guard lock(mutex);
  Queues& queues = (*of_devices)[device];
  return &queues.all.at(queues.next++ % connections);
}

void StandInDevice::begin_work() {
  const std::lock_guard lock(mutex_);
  ++under_way_;
}

void StandInDevice::end_work() {
  const std::lock_guard lock(mutex_);
  if (--under_way_ == 0) changed_.notify_all();
}

std::unique_lock<std::mutex> StandInDevice::idle() {
  std::unique_lock held(enqueueing_);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return under_way_ == 0; });
  return held;
}

void StandInDevice::load_all() {
  const std::lock_guard lock(mutex_);
  all_loaded_ = true;
}

void StandInDevice::load_at_first_start(const std::string& kernel) {
  if (!stand_in().modes.lazy_loading) return;
  {
    const std::lock_guard lock(mutex_);
    if (all_loaded_ || !loaded_.insert(kernel).second) return;
  }
  const auto waited = idle();
}

void StandInDevice::take_place() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return taken_places_ < stand_in().resident_blocks; });
  ++taken_places_;
}

void StandInDevice::give_place() {
  const std::lock_guard lock(mutex_);
  --taken_places_;
  changed_.notify_all();
}

void StandInDevice::run_blocks(int blocks, const std::function<void(int)>& run) {
  const bool few_places = stand_in().modes.few_places;
  if (few_places) {
    std::unique_lock lock(mutex_);
    const std::uint64_t mine = started_kernels_++;
    changed_.wait(lock, [&] { return placed_kernels_ == mine; });
  }
  std::vector<std::thread> threads;
  for (int block = 0; block < blocks; ++block) {
    if (few_places) take_place();
    threads.emplace_back([this, block, few_places, &run] {
      run(block);
      if (few_places) give_place();
    });
  }
  if (few_places) {
    const std::lock_guard lock(mutex_);
    ++placed_kernels_;
    changed_.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
}

std::uint64_t HardwareQueue::enter() {
  const std::lock_guard lock(mutex_);
  return entered_++;
}

void HardwareQueue::wait_for_turn(std::uint64_t ticket) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return begun_ == ticket; });
  ++begun_;
  changed_.notify_all();
}

void TimeSlices::next() {
  constexpr std::chrono::milliseconds kSlice(2);
  std::this_thread::yield();
  if (!stand_in().modes.time_slices) return;
  for (;;) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    if (now / kSlice % ranks_ == rank_) return;
    std::this_thread::sleep_for(kSlice - now % kSlice);
  }
}

}  // namespace rondo::test
