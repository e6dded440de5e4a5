// One rank's connections to the others. Made by joining/, owned by the communicator, borrowed by
// the engine, which does not know how they were made.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rondo/topology.hpp>

#include "base/algorithm_set.hpp"
#include "base/index.hpp"
#include "base/link_facts.hpp"
#include "base/pairwise_use.hpp"
#include "carrier/host_segment.hpp"
#include "carrier/peer_watch.hpp"
#include "engine/pace.hpp"
#include "fifo/fifo.hpp"
#include "memory/reach.hpp"
#include "net/host_watch.hpp"
#include "net/pump.hpp"
#include "plan/algorithms.hpp"
#include "plan/cost_model.hpp"

namespace rondo::detail {

class Handover;  // joining/handover.hpp: for ranks that are threads

// How the rank reaches the others.
struct Links {
  FifoGeometry ring_geometry;      // of the smallest FIFO of an edge in the ring, on any rank
  FifoGeometry rail_geometry;      // of the rails between hosts
  FifoGeometry off_ring_geometry;  // of the off-ring edges, which have no larger slots
  std::vector<SendEnd> to;         // by ring position of the peer; used where there is an edge
  std::vector<RecvEnd> from;       // by ring position, too
  // Indexed by ring position; null where the peer does not share the segment.
  std::vector<Bell*> bells;
  // The ends of pairwise edges, also indexed by ring position. They have no slots until they are
  // first used (engine/pairwise_edges.hpp).
  struct PairwiseEnds {
    std::vector<SendEnd> to;
    std::vector<RecvEnd> from;
    FifoGeometry geometry;
  };
  ByPairwiseUse<PairwiseEnds> pairwise;
  [[nodiscard]] PairwiseEnds& pairwise_of(Algorithm algorithm) {
    return pairwise[Index(pairwise_use(algorithm))];
  }
  // Distinguishes messages of this communicator from those of an earlier one.
  std::uint64_t session = 0;
  std::shared_ptr<HostSegment> segment;
  // What this rank uses of the segment in calls by certain algorithms; reserved in the first of
  // them.
  struct UsedPart {
    AlgorithmSet users;
    SegmentPart part;
  };
  std::vector<UsedPart> used_parts;
  std::vector<std::size_t> positions;  // in the ring, by rank
  std::vector<int> ranks_sharing;      // the segment, this rank among them
  int rails = 1;                       // topology/ring_order.hpp
  std::vector<int> rail;  // the ranks of this rank's rail, in its order; empty if it has none
  // Where `hierarchical` is offered: how many hosts are along each rail, and which of them is this
  // rank's.
  int hosts = 1;
  int host = 0;
  std::shared_ptr<Handover> handover;  // null for processes
  Reach reach;                         // what ranks reach of each other's memory
  // Measured, of any two ranks that are neighbours in the ring; nothing if no link leaves shared
  // memory.
  std::optional<LinkFacts> slowest_link;
  Carrier network = Carrier::mpi;  // by which `pump` sends
  bool share_cores = false;        // on some machine, of whatever host, more ranks than cores
  std::unique_ptr<Pump> pump;      // null if shared memory carries all; destroyed before `segment`
};

// How the rank waits for the others.
struct Waiting {
  PeerWatch peers;
  std::shared_ptr<HostWatch> hosts;  // null: no other host is watched
  std::vector<int> watched_as;       // by rank: its number among the members that `hosts` watches
  std::string unwatched;             // sentences on the ranks that `peers` cannot watch, and why
  bool crowded = false;              // more ranks of this host than cores
  bool short_of_quota = false;       // more than the cores that their control group may use
  NapLengths naps;                   // in waits for other hosts
  // Makes an MPI call, so that MPI goes on with operations of the program's own. Null if the
  // communicator was not made by from_mpi, or MPI may not be called in its calls. Never throws.
  std::function<void()> drive_program;
};

struct Wiring {
  int rank = 0;
  int size = 1;
  Topology topology;
  Links links;
  Waiting waiting;
  Offers offers;

  [[nodiscard]] bool shares_memory(int with) const {
    return std::find(links.ranks_sharing.begin(), links.ranks_sharing.end(), with) !=
           links.ranks_sharing.end();
  }
};

// What the calls of this communicator cost between hosts; nothing if shared memory carries all.
inline std::optional<CostPlace> cost_between_hosts(const Wiring& wiring) {
  if (!wiring.offers.leaves_memory) return std::nullopt;
  const Links& links = wiring.links;
  CostPlace place;
  place.ranks = wiring.size;
  place.hosts = links.hosts;
  place.rails = links.rails;
  place.link = link_costs(links.slowest_link);
  place.ring = links.hosts > 1 ? links.rail_geometry : links.ring_geometry;
  place.off_ring = links.off_ring_geometry;
  place.share_cores = links.share_cores;
  place.trees = links.pairwise[Index(PairwiseUse::trees)].geometry;
  return place;
}

}  // namespace rondo::detail
