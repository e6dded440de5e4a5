// Makes both ends of a rank's FIFOs, and the watch over the processes of its host.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/algorithm_set.hpp"
#include "carrier/host_segment.hpp"
#include "carrier/pump.hpp"
#include "engine/wiring.hpp"
#include "joining/rank_facts.hpp"

namespace rondo::detail {

// Makes the pump that carries this rank's edges to other hosts.
using PumpFactory = std::function<std::unique_ptr<Pump>(PumpEdges)>;

// Positions in the ring, by rank.
std::vector<std::size_t> positions_of(const std::vector<int>& ring);

// A wiring without any link.
Wiring empty_wiring(int rank, int size, std::vector<int> ring);

// Connects the ends of the wiring's rank to those of `edges` that its segment carries, and finds the bells of
// those who share it.
void connect_segment(Wiring& wiring, const std::vector<SegmentEdge>& edges);

// Of one edge that leaves the shared memory, and both its ends in this process: the wiring's and the pump's.
void connect_to_pump(Wiring& wiring, PumpEdges& carried, const Edge& edge, AlgorithmSet algorithms,
                     const FifoGeometry& geometry);

// Those who do not share memory with this rank.
std::vector<int> ranks_elsewhere(int size, const std::vector<int>& ranks_sharing);

// Watches the processes of the ranks that share memory; those that cannot be watched are named in the log now, and in
// the TimeoutErrors that may come of it.
void watch_peers(Wiring& wiring, const std::vector<RankFacts>& facts);

}  // namespace rondo::detail
