// How large slots are, and how many a FIFO has.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <rondo/options.hpp>

#include "bootstrap/link_probe.hpp"
#include "carrier/host_segment.hpp"
#include "fifo/fifo.hpp"
#include "topology/ring_order.hpp"

namespace rondo::detail {

// Throws UsageError for FIFO sizes and carriers out of range.
void validate_geometry(const CommunicatorOptions& options);
// The same, naming the field of `options` that is out of range.
void validate_fifo_size(const char* options, std::size_t slot_bytes, std::uint32_t slots);

// The largest call that one_shot has outboxes for: beyond, reading everyone's whole vector costs more than the
// ring's hops.
std::size_t one_shot_limit_bytes(int size);

// Of edges in the ring, and of those that only other algorithms use, which are nowhere larger. All of a kind have one
// size of slots, since a slice goes by any of them.
struct EdgeGeometries {
  FifoGeometry ring;
  FifoGeometry off_ring;
  [[nodiscard]] const FifoGeometry& of(bool in_ring) const { return in_ring ? ring : off_ring; }
};
struct Geometries {
  EdgeGeometries memory;  // nowhere more slots than a link has
  EdgeGeometries link;
};

// How many edges lie within a host, of the host with most.
struct LocalEdges {
  std::uint64_t ring = 0;
  std::uint64_t off_ring = 0;
  void count(const ScheduleEdge& edge) { ++(edge.in_ring() ? ring : off_ring); }
};

// `cache_bytes`: the smallest share of a rank. `link`: the slowest of those between hosts, if there are any. Slots
// become smaller where a host has many ranks, unless options name them, so that up to 128 take at most 24 MiB.
Geometries choose_geometries(const CommunicatorOptions& options, std::uint64_t cache_bytes,
                             const std::optional<LinkFacts>& link, const LocalEdges& local);

// The edges with the FIFO that each gets in memory.
std::vector<SegmentEdge> with_geometry(const std::vector<ScheduleEdge>& edges,
                                       const EdgeGeometries& memory);

// How long a rank that waits for a long vector may sleep: as long as a slice takes on a slow link. On a fast one
// the sleep would last longer than what is under way.
std::chrono::microseconds nap_for(const LinkFacts& link, const FifoGeometry& ring);

}  // namespace rondo::detail
