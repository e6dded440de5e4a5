// Which carrier each edge between devices has, and why; and whether small calls may go by one_shot.
#pragma once

#include <string>
#include <vector>

#include <rondo/cuda.hpp>

#include "bootstrap/share_memory.hpp"
#include "cuda/engine/device_wiring.hpp"
#include "cuda/joining/device_facts.hpp"
#include "cuda/joining/reach.hpp"
#include "topology/device_ring.hpp"

namespace rondo::detail::gpu {

// The same on all ranks. `links`: what lies between each pair.
std::vector<Edge> device_edges(const GroupFacts& group, const std::vector<ScheduleEdge>& edges,
                               const std::vector<std::vector<DeviceLink>>& links,
                               const Reach& reach);

// Why not every rank reaches the memory of every other, which one_shot and direct need; empty if
// every rank does.
std::string objection_to_reach(const Reach& reach);

// Kernels of two ranks on one host must see the same abort word, and pinned FIFOs lie in the same
// memory as that word. So edges between ranks that do not share that memory use MPI. Returns
// whether there are any.
bool fall_back_to_mpi(std::vector<Edge>& edges, const SharedMemory& shared);

// Throws TransportError, on all ranks alike, if PeerAccess::required cannot be met. Logs the edges
// of `rank`, of those for `pairwise` the fallbacks only, and why one_shot is lost if it is.
void refuse_fallbacks(const std::vector<ScheduleEdge>& edges, const std::vector<Edge>& settled,
                      const std::string& one_shot_lost, const GroupFacts& group,
                      cuda::PeerAccess peer_access, int rank);

}  // namespace rondo::detail::gpu
