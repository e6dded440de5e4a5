// Joins devices: decides the ring's order and each edge's carrier, and makes both ends of every
// FIFO.
#pragma once

#include <rondo/cuda.hpp>

#include "cuda/engine/device_wiring.hpp"
#include "engine/wiring.hpp"

namespace rondo::detail::gpu {

// Collective over the ranks of `host`, which has this wiring; whatever fails on one rank is thrown
// by all.
DeviceWiring wire_devices(rondo::Communicator& host, Wiring& wiring, const cuda::Options& options);

}  // namespace rondo::detail::gpu
