// What joins one rank to the others.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <rondo/topology.hpp>

#include "carrier/host_segment.hpp"
#include "carrier/peer_watch.hpp"
#include "carrier/pump.hpp"
#include "fifo/fifo.hpp"

namespace rondo::detail {

// Made by communicator/wiring, owned by the engine, which
// knows nothing of how it came to be.
struct Wiring {
  int rank = 0;
  int size = 1;
  Topology topology;
  FifoGeometry ring_geometry;  // of the smallest FIFO of an edge in the ring, on any rank
  FifoGeometry star_geometry;  // of the other edges, which have no larger slots
  std::vector<SendEnd> to;     // by ring position of the peer; used where there is an edge
  std::vector<RecvEnd> from;   // likewise
  std::vector<Bell*> bells;    // likewise; null where the peer does not share the segment
  std::shared_ptr<HostSegment> segment;
  std::vector<int> ranks_sharing;  // the segment, this rank among them
  PeerWatch peers;
  // Sentences on the ranks that `peers` cannot watch, and why; empty: it watches all.
  std::string unwatched;
  std::unique_ptr<Pump> pump;  // null when shared memory carries all; dies before the segment
  bool crowded = false;
  std::size_t one_shot_bytes = 0;   // calls up to this size may go by one_shot; 0: none
  bool leaves_memory = false;       // not all edges of the ring are in the segment
  std::chrono::microseconds nap{};  // of one who waits for a long vector from another host; 0: none
  bool doubling = false;            // there are edges for recursive_doubling
  std::uint64_t streaming_bytes = 0;  // outputs from this size on go past the caches
};

}  // namespace rondo::detail
