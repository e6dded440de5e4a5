// Makes both ends of a rank's FIFOs, and the watch over the processes of its host.
#pragma once

#include <vector>

#include "carrier/host_segment.hpp"
#include "engine/wiring.hpp"
#include "joining/rank_facts.hpp"
#include "net/pump.hpp"
#include "topology/ring_order.hpp"

namespace rondo::detail {

// Returns each rank's position in the ring, by rank.
std::vector<std::size_t> positions_of(const std::vector<int>& ring);

// Returns a wiring without any link.
Wiring empty_wiring(int rank, int size, std::vector<int> ring);

void set_pairwise_geometries(Wiring& wiring, const ByPairwiseUse<FifoGeometry>& geometries);

// Makes the FIFO ends of the wiring's rank for those of `edges` that its segment carries, and finds
// the bells of the ranks that share the segment. Notes what of the segment these ends and one_shot
// use.
void connect_segment(Wiring& wiring, const std::vector<SegmentEdge>& edges);

// Makes the FIFO of one edge that is not in shared memory: one end is the wiring's and the other
// the pump's, both in this process.
void connect_to_pump(Wiring& wiring, PumpEdges& carried, const Edge& edge,
                     const ScheduleEdge& users, const FifoGeometry& geometry);

// Returns the ranks that are not in `ranks_sharing`.
std::vector<int> ranks_elsewhere(int size, const std::vector<int>& ranks_sharing);

// Watches the processes of the ranks that share memory. Ranks that cannot be watched are named in
// the log now, and in later TimeoutErrors.
void watch_peers(Wiring& wiring, const std::vector<RankFacts>& facts);

}  // namespace rondo::detail
