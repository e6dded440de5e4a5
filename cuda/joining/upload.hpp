// The FIFO ends of a rank, as its kernels see them, and the tables that its kernels walk.
#pragma once

#include <vector>

#include "cuda/engine/device_wiring.hpp"
#include "cuda/engine/exposed_layout.hpp"
#include "cuda/joining/reach.hpp"
#include "net/pump.hpp"

namespace rondo::detail::gpu {

// Makes the ends of all of `edges` that begin or end at the wiring's rank, writes them and the
// other tables to its device, and fills in its view. `settled`: the carriers of these edges.
// Returns the edges that a pump is to carry from the start. Throws CudaError.
PumpEdges upload_ends(DeviceWiring& wiring, const std::vector<ScheduleEdge>& edges,
                      const std::vector<Edge>& settled, const std::vector<ExposedLayout>& layouts,
                      const Reach& reach);

}  // namespace rondo::detail::gpu
