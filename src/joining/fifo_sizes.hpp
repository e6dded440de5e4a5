// Decides how large slots are, and how many a FIFO has.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <rondo/options.hpp>

#include "base/link_facts.hpp"
#include "carrier/host_segment.hpp"
#include "engine/pace.hpp"
#include "fifo/fifo.hpp"
#include "topology/ring_order.hpp"

namespace rondo::detail {

// Throws UsageError for FIFO sizes and carriers out of range.
void validate_geometry(const CommunicatorOptions& options);
// Throws UsageError that names the field of options of this name that is out of range. 0 stands for
// a size that Rondo chooses.
void validate_fifo_size(const char* options_name, std::size_t slot_bytes, std::uint32_t slots);

// Returns the size of the largest call for which one_shot has outboxes. In larger calls, reading
// every rank's whole vector costs more than the hops of the ring.
std::size_t one_shot_limit_bytes(int size);

// Returns the size of a rank's stage, where `ranks` ranks share a host; 0 if these are too many for
// stages.
std::size_t stage_bytes_for(std::size_t ranks);

// The FIFO sizes of the edges that long vectors go along (ScheduleEdge::bulk: the ring and rails),
// and those of the other edges, whose slots are never larger. All edges of one kind have the same
// slot size, since a slice may go along any of them.
struct EdgeGeometries {
  FifoGeometry ring;
  FifoGeometry off_ring;
  [[nodiscard]] const FifoGeometry& of(bool carries_bulk) const {
    return carries_bulk ? ring : off_ring;
  }
};
struct Geometries {
  EdgeGeometries memory;  // never more slots than `link`
  EdgeGeometries link;
  // The sizes for the edges between any two ranks, which get memory when they are first used.
  ByPairwiseUse<FifoGeometry> pairwise;
};

// The numbers of ranks and edges within a host: those of the host that has most.
struct LocalEdges {
  std::uint64_t ring = 0;
  std::uint64_t off_ring = 0;
  std::uint64_t ranks = 0;
  void count(const ScheduleEdge& edge) { ++(edge.in_ring() ? ring : off_ring); }
};

// `cache_bytes`: the smallest cache share of any rank. `link`: the slowest link between hosts, if
// there is one. Slots are smaller where a host has many ranks, so that up to 128 ranks take at most
// 27 MiB, unless `options` set sizes; the edges of `tree`, once they are used, take 32 MiB more.
Geometries choose_geometries(const CommunicatorOptions& options, std::uint64_t cache_bytes,
                             const std::optional<LinkFacts>& link, const LocalEdges& local);

// Returns `wanted`, or fewer or smaller slots if the FIFOs of so many edges took more than
// `most_bytes`. It is used for the edges between any two ranks: these may be so many that the limit
// holds for sizes that the user has named, too.
FifoGeometry within_limit(FifoGeometry wanted, std::uint64_t edges, std::uint64_t most_bytes);

// Returns the edges, each with the FIFO that it gets in memory.
std::vector<SegmentEdge> with_geometry(const std::vector<ScheduleEdge>& edges,
                                       const EdgeGeometries& memory);

// A rank that waits for a large chunk may sleep as long as a slice takes on a slow link. It does
// not sleep on a fast link, nor in calls whose chunks take less than a millisecond: there each hop
// would wait for a sleep to end.
NapLengths naps_for(const LinkFacts& link, const FifoGeometry& ring);

}  // namespace rondo::detail
