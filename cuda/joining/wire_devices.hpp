// Joins devices: decides the ring's order and each edge's carrier, and makes both ends of every FIFO.
#pragma once

#include <rondo/cuda.hpp>

#include "engine/device_wiring.hpp"

namespace rondo::detail::gpu {

// Collective over the ranks of `host`; whatever fails on one rank is thrown by all.
DeviceWiring wire_devices(rondo::Communicator& host, const cuda::Options& options);

}  // namespace rondo::detail::gpu
