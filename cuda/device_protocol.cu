// Compiles the schedule, the FIFO and the loop for the device, so that they stay fit for it. The
// transport that runs them there comes on top of this.

#include "engine/run_schedule.hpp"
#include "fifo/fifo.hpp"

namespace rondo::detail {

// One thread, f32 sums.
struct DevicePort {
  SendEnd* to;
  RecvEnd* from;
  const float* in;
  float* out;

  __device__ static std::uint64_t chunk_at(int position) {
    return static_cast<std::uint64_t>(position);
  }
  __device__ bool wait_received(int, const Range&) {
    while (!from->can_peek()) {
    }
    return true;
  }
  __device__ bool wait_free(int) {
    while (!to->can_acquire()) {
    }
    return true;
  }
  __device__ void move(const Step& step, const Range& slice) {
    const auto* received = reinterpret_cast<const float*>(step.has(kRecv) ? payload(from->slot()) : nullptr);
    auto* sent = reinterpret_cast<float*>(step.has(kSend) ? payload(to->slot()) : nullptr);
    for (std::uint64_t i = 0; i < slice.count; ++i) {
      const std::uint64_t at = slice.offset + i;
      float value = received != nullptr ? received[i] : in[at];
      if (step.has(kReduce)) value += in[at];
      if (step.has(kCopy)) out[at] = value;
      if (sent != nullptr) sent[i] = value;
    }
  }
  __device__ void release(int) { from->release(); }
  __device__ void publish(int, const Range& slice) {
    to->slot()->bytes = slice.count * sizeof(float);
    to->publish();
  }
};

__global__ void run_on_device(Schedule schedule, Slicing slicing, DevicePort port) {
  run_schedule(schedule, slicing, port);
}

}  // namespace rondo::detail
