// Joins devices: decides the ring's order and each edge's carrier, and makes both ends of every FIFO.
#pragma once

#include <rondo/cuda.hpp>

#include "engine/device_wiring.hpp"
#include "engine/engine.hpp"

namespace rondo::detail::gpu {

// Collective over the ranks of `host`, whose engine is `engine`; whatever fails on one rank is thrown by all.
DeviceWiring wire_devices(rondo::Communicator& host, Engine& engine, const cuda::Options& options);

}  // namespace rondo::detail::gpu
