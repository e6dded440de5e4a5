// What wiring the ranks of one process and wiring processes have in common.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include <rondo/options.hpp>

#include "base/put.hpp"
#include "base/rank_pair.hpp"
#include "bootstrap/link_probe.hpp"
#include "engine/wiring.hpp"
#include "topology/ring_order.hpp"

namespace rondo::detail {

// What every rank tells the others. Fixed size: it travels as bytes.
struct RankFacts {
  std::array<char, 256> host{};
  std::array<char, 64> boot{};
  std::uint64_t session = 0;  // random; rank 0's is the communicator's
  std::uint64_t process_namespace = 0;
  std::int64_t process_id = 0;
  std::int32_t numa_node = -1;
  std::uint32_t slots = 0;
  std::uint64_t slot_bytes = 0;
  std::uint64_t l2_bytes = 0;             // a core's own cache
  std::array<std::uint64_t, 16> cores{};  // that it may run on, a bit each
  CarrierChoice carrier = CarrierChoice::automatic;
  std::array<char, 512> refusal{};  // why this rank cannot go on; empty if it can
};

RankFacts my_facts(const CommunicatorOptions& options);

// Throws UsageError that names the field of `options` that is out of range.
void validate_fifo_size(const char* options, std::size_t slot_bytes, std::uint32_t slots);

// The largest call that one_shot has boxes for: beyond, reading everyone's whole vector costs more than the
// ring's hops.
std::size_t one_shot_limit_bytes(int size);

// How long a rank that waits for a long vector may sleep: as long as a slice takes on a slow link. On a fast one
// the sleep would last longer than what is under way.
std::chrono::microseconds nap_for(const LinkFacts& link, const FifoGeometry& ring);

struct EdgeGeometries {
  FifoGeometry ring;
  FifoGeometry star;  // of the edges that only other algorithms use; nowhere larger than the ring's
  [[nodiscard]] const FifoGeometry& of(bool in_ring) const { return in_ring ? ring : star; }
};
// All slots of the ring have one size, and all others too, since a slice goes by any of them.
struct Geometries {
  EdgeGeometries memory;  // nowhere more slots than a link has
  EdgeGeometries link;
};
// How many edges lie within a host, of the host with most.
struct LocalEdges {
  std::uint64_t ring = 0;
  std::uint64_t star = 0;
  void count(const ScheduleEdge& edge) { ++(edge.in_ring() ? ring : star); }
};
// `cache_bytes`: the smallest share of a rank. `link`: the slowest of those between hosts, if there are any. Slots
// become smaller where a host has many ranks, unless options name them, so that up to 128 take at most 24 MiB.
Geometries choose_geometries(const CommunicatorOptions& options, std::uint64_t cache_bytes,
                             const std::optional<LinkFacts>& link, const LocalEdges& local);
// The edges with the FIFO that each gets in memory.
std::vector<SegmentEdge> with_geometry(const std::vector<ScheduleEdge>& edges,
                                       const EdgeGeometries& memory);

std::vector<RankPlace> places_of(const std::vector<RankFacts>& facts);
std::vector<Place> order_keys(const std::vector<RankFacts>& facts);
// Positions in the ring, by rank.
std::vector<std::size_t> positions_of(const std::vector<int>& ring);

// A wiring without any link.
Wiring empty_wiring(int rank, int size, std::vector<int> ring);
// Connects the ends of the wiring's rank to those of `edges` that its segment carries, and finds the bells of
// those who share it.
void connect_segment(Wiring& wiring, const std::vector<SegmentEdge>& edges);
// From which size on an output is streamed: it leaves room for nothing else in the rank's cache.
// Measured: docs/performance.md.
std::uint64_t streaming_bytes(const RankFacts& rank);
// A rank's part of a core's cache, when these share a host.
std::uint64_t cache_share_bytes(const std::vector<RankFacts>& ranks_of_host);
// Whether these, which share a host, are more than the cores that they may run on.
bool crowded(const std::vector<RankFacts>& ranks_of_host);

}  // namespace rondo::detail
