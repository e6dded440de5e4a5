// Lets one thread of the process at a time enqueue on a device.
//
// On an H200 (driver 580) calls of ranks that are threads and share the device now and then ended
// at their deadline: all kernels had been enqueued, and one did not start before the others had
// given up. It happened only to streams without work to which several threads gave some at the same
// moment; never to streams that had been used before, and never with this turn. So it seems that
// CUDA gives a stream one of the device's queues when work comes to it, and that two threads may be
// given the same one: a kernel then stands behind another that waits for it.
#pragma once

#include <mutex>

namespace rondo::detail::gpu {

// May not be held while the thread waits for the device.
[[nodiscard]] std::unique_lock<std::mutex> turn_to_enqueue(int device);

}  // namespace rondo::detail::gpu
