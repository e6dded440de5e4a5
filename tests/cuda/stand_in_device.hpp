// What a device of the stand-in and its driver do that makes kernels, and calls of the host, wait
// for each other. Some of it CUDA does always, the rest at times: StandIn::modes says what is done.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "tests/cuda/host_block.hpp"

namespace rondo::test {

class StandInDevice {
 public:
  static StandInDevice& number(int device);

  // What streams have enqueued and has not ended.
  void begin_work();
  void end_work();
  // Held while something is enqueued.
  [[nodiscard]] std::unique_lock<std::mutex> enqueueing() { return std::unique_lock(enqueueing_); }
  // Waits until all that was enqueued on the device has ended. Held while memory is allocated,
  // released or registered: nothing can be enqueued meanwhile. So a rank that allocates while
  // others' kernels wait for a rank that has not enqueued its own yet makes all of them miss their
  // deadline.
  [[nodiscard]] std::unique_lock<std::mutex> idle();

  // Loads all kernels. Where the mode is on, a kernel that is started and not yet loaded waits for
  // an idle device.
  void load_all();
  void load_at_first_start(const std::string& kernel);

  // Runs the blocks of a kernel, each by `run(block)` on threads of its own, and returns when all
  // have ended. Where the mode is on, the device has places for as many blocks as
  // kernels::resident_blocks() says, and gives them to one kernel after the other, in the order in
  // which these were started.
  void run_blocks(int blocks, const std::function<void(int)>& run);

 private:
  void take_place();
  void give_place();

  std::mutex enqueueing_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int under_way_ = 0;
  bool all_loaded_ = false;
  std::set<std::string> loaded_;
  std::uint64_t started_kernels_ = 0;
  std::uint64_t placed_kernels_ = 0;  // of the started ones: all of their blocks have had places
  int taken_places_ = 0;
};

// One of the queues through which a device's streams hand their work over. Several streams share
// one, and what is next in it waits until its stream is free, while what comes behind it, of
// whatever stream, waits too.
class HardwareQueue {
 public:
  // One of the device's queues, in turn; null where the mode is off and each stream has its own.
  static HardwareQueue* next_of(int device);

  std::uint64_t enter();
  void wait_for_turn(std::uint64_t ticket);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t entered_ = 0;
  std::uint64_t begun_ = 0;
};

// Where the mode is on, ranks take turns on their device, as processes do: in the time slices of
// the others the kernels of a rank stand still as soon as they wait for something.
class TimeSlices final : public Turns {
 public:
  TimeSlices(int rank, int ranks) : rank_(rank), ranks_(ranks) {}
  void next() override;

 private:
  int rank_;
  int ranks_;
};

}  // namespace rondo::test
