#include "joining/fifo_sizes.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/index.hpp"
#include "engine/stage_places.hpp"
#include "schedule/schedule.hpp"
#include "schedule/slicing.hpp"

namespace rondo::detail {
namespace {

constexpr std::uint32_t kShmSlots = 8;
// In naive, rank 0 answers all other ranks at the same time. With a long window all of them would
// get the end of it late, and none would send its next window meanwhile.
constexpr std::uint32_t kOffRingSlots = 8;
constexpr std::uint32_t kLeastLinkSlots = 16;
constexpr std::uint32_t kMostLinkSlots = 64;
// Only naive, recursive_doubling and halving_doubling use these edges, of which a rank may have
// many. The rings along rails have the sizes of the ring.
constexpr std::uint64_t kMostOffRingSlotBytes = std::uint64_t{32} << 10U;
// Limits for all ring edges, and for all off-ring edges, within a host. Together with the outboxes
// of one_shot (at most 1 MiB), the stages (at most 4 MiB) and the state that ranks show each other,
// they stay within 27 MiB, even for 128 ranks.
constexpr std::uint64_t kMostRingBytes = std::uint64_t{12} << 20U;
constexpr std::uint64_t kMostOffRingBytes = std::uint64_t{8} << 20U;
constexpr std::uint64_t kLeastSlotBytes = 512;
// The slots of each pairwise edge between two ranks; and a limit for all edges of a host, if all
// are used.
constexpr std::uint64_t kPairwiseSlotBytes = std::uint64_t{32} << 10U;
constexpr std::uint32_t kPairwiseSlots = 16;
constexpr std::uint64_t kMostPairwiseBytes = std::uint64_t{128} << 20U;
// Of a tree's, of whose slots a window takes a sixth (schedule/tree_steps.hpp).
constexpr std::uint32_t kTreeSlots = 32;
constexpr std::uint64_t kMostTreeBytes = std::uint64_t{32} << 20U;
// The slots of both neighbours take half of a core's cache, and leave half to the buffers that they
// are combined with.
FifoGeometry shm_geometry(std::uint64_t cache_bytes) {
  const std::uint64_t share = cache_bytes / 2 / 2 / kShmSlots;
  return {std::clamp<std::uint64_t>(std::bit_floor(share), std::uint64_t{4} << 10U,
                                    std::uint64_t{256} << 10U),
          kShmSlots};
}

// A slice takes longer on the link than a nap of the rank that waits for it, so that the fixed cost
// of a slice, a few µs, is small. There are enough slots to keep the link busy for several naps
// plus its latency, since a rank that has nothing to do drives its pump only once in a nap.
FifoGeometry link_geometry(const LinkFacts& link) {
  constexpr double kSliceUs = 200;
  constexpr double kUnderWayUs = 1000;
  constexpr double kSmallSlotBytes = 8 << 10;
  constexpr double kLargeSlotBytes = 128 << 10;
  // Limited while they are doubles: a link may be so fast that its bytes do not fit into an
  // integer.
  const auto wanted = static_cast<std::uint64_t>(
      std::clamp(link.bytes_per_us * kSliceUs, kSmallSlotBytes, kLargeSlotBytes));
  const std::uint64_t slot_bytes = std::bit_ceil(wanted);
  const double under_way = link.bytes_per_us * (kUnderWayUs + 2 * link.latency_us);
  const auto half_the_slots = static_cast<std::uint32_t>(std::clamp<double>(
      under_way / static_cast<double>(slot_bytes), 0.5 * kLeastLinkSlots, 0.5 * kMostLinkSlots));
  return {slot_bytes, std::bit_ceil(2 * half_the_slots)};
}

std::uint64_t slot_limit(std::uint64_t all_bytes, std::uint64_t edges, std::uint32_t slots) {
  return std::max(kLeastSlotBytes,
                  std::bit_floor(all_bytes / std::max<std::uint64_t>(edges * slots, 1)));
}

}  // namespace

FifoGeometry within_limit(FifoGeometry wanted, std::uint64_t edges, std::uint64_t most_bytes) {
  edges = std::max<std::uint64_t>(edges, 1);
  const std::uint64_t most_slots = most_bytes / (edges * (kLeastSlotBytes + sizeof(SlotHeader)));
  wanted.slots = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(most_slots, 2, wanted.slots));
  wanted.slot_bytes = std::min(wanted.slot_bytes, slot_limit(most_bytes, edges, wanted.slots));
  return wanted;
}

std::size_t one_shot_limit_bytes(int size) {
  constexpr std::size_t kMost = std::size_t{64} << 10U;
  constexpr std::size_t kMostReadByARank = std::size_t{512} << 10U;
  return std::min(kMost, kMostReadByARank / static_cast<std::size_t>(size) / 64 * 64);
}

std::size_t stage_bytes_for(std::size_t ranks) {
  constexpr std::size_t kMost = std::size_t{2} << 20U;
  constexpr std::size_t kMostOfAHost = std::size_t{4} << 20U;
  // A pass takes a part of a stage, in which each owner has at least a granule.
  constexpr std::size_t kParts = kStageParts * kChunkGranuleBytes;
  const std::size_t bytes = std::min(kMost, kMostOfAHost / ranks / kParts * kParts);
  const std::size_t least = ranks * kParts;
  return bytes < least ? 0 : bytes;
}

void validate_fifo_size(const char* options_name, std::size_t slot_bytes, std::uint32_t slots) {
  constexpr std::size_t kLargestSlot = std::size_t{1} << 30U;
  if (slot_bytes % 64 != 0 || slot_bytes > kLargestSlot) {
    throw UsageError(
        fmt::format("{}::slot_bytes is {}; it must be a multiple of 64 up to 1 GiB, or 0",
                    options_name, slot_bytes));
  }
  if (slots == 1 || slots > 4096) {
    throw UsageError(fmt::format(
        "{}::slots is {}; it must be 2 to 4096, or 0. One is too few, since a rank holds one slot "
        "while it waits for the next",
        options_name, slots));
  }
}

void validate_geometry(const CommunicatorOptions& options) {
  validate_fifo_size("CommunicatorOptions", options.slot_bytes, options.slots);
  if (options.carrier > CarrierChoice::ucx) {
    throw UsageError("CommunicatorOptions::carrier is not a CarrierChoice");
  }
}

namespace {

// Of the edges that a tree uses: from each rank to those at distances of powers of two, both ways.
FifoGeometry tree_geometry(const CommunicatorOptions& options, std::uint64_t ranks) {
  FifoGeometry trees{kPairwiseSlotBytes, kTreeSlots};
  if (options.slot_bytes != 0) trees.slot_bytes = options.slot_bytes;
  if (options.slots != 0) trees.slots = options.slots;
  const std::uint64_t edges = ranks * 2 * static_cast<std::uint64_t>(std::bit_width(ranks));
  trees.slots = std::max(trees.slots, tree::kLeastSlots);
  trees = within_limit(trees, edges, kMostTreeBytes);
  // Which may have left fewer, of the smallest size, where a host has some 900 ranks or more.
  trees.slots = std::max(trees.slots, tree::kLeastSlots);
  return trees;
}

}  // namespace

NapLengths naps_for(const LinkFacts& link, const FifoGeometry& ring) {
  constexpr double kShortestUs = 60;
  constexpr double kLongestUs = 150;
  constexpr double kLeastChunkUs = 1000;
  // 2 Gbit/s. On faster links it takes the sender's work to keep the wire busy: with naps, 64 MiB
  // on two hosts took 1.2 times as long at 2.5 Gbit/s by MPI, and 2.4 times at 10 Gbit/s.
  constexpr double kFastBytesPerUs = 250;
  const double slice_us = static_cast<double>(ring.slot_bytes) / link.bytes_per_us;
  if (slice_us < kShortestUs || link.bytes_per_us > kFastBytesPerUs) return {};
  return {std::chrono::microseconds(static_cast<int>(std::min(slice_us, kLongestUs))),
          static_cast<std::uint64_t>(link.bytes_per_us * kLeastChunkUs)};
}

Geometries choose_geometries(const CommunicatorOptions& options, std::uint64_t cache_bytes,
                             const std::optional<LinkFacts>& link, const LocalEdges& local) {
  FifoGeometry ring = link ? link_geometry(*link) : shm_geometry(cache_bytes);
  ring.slot_bytes = std::min(ring.slot_bytes, slot_limit(kMostRingBytes, local.ring, kShmSlots));
  FifoGeometry off_ring = ring;
  if (link) off_ring = {std::min(ring.slot_bytes, kMostOffRingSlotBytes), kOffRingSlots};
  off_ring.slot_bytes =
      std::min(off_ring.slot_bytes, slot_limit(kMostOffRingBytes, local.off_ring, off_ring.slots));
  Geometries chosen;
  chosen.link = {ring, off_ring};
  chosen.memory = chosen.link;
  chosen.memory.ring.slots = kShmSlots;
  for (EdgeGeometries* edges : {&chosen.memory, &chosen.link}) {
    for (FifoGeometry* geometry : {&edges->ring, &edges->off_ring}) {
      if (options.slot_bytes != 0) geometry->slot_bytes = options.slot_bytes;
      if (options.slots != 0) geometry->slots = options.slots;
    }
  }
  FifoGeometry pairwise{kPairwiseSlotBytes, kPairwiseSlots};
  if (options.slot_bytes != 0) pairwise.slot_bytes = options.slot_bytes;
  if (options.slots != 0) pairwise.slots = options.slots;
  pairwise = within_limit(pairwise, local.ranks * local.ranks, kMostPairwiseBytes);
  chosen.pairwise[Index(PairwiseUse::exchanges)] = pairwise;
  chosen.pairwise[Index(PairwiseUse::trees)] = tree_geometry(options, local.ranks);
  return chosen;
}

std::vector<SegmentEdge> with_geometry(const std::vector<ScheduleEdge>& edges,
                                       const EdgeGeometries& memory) {
  std::vector<SegmentEdge> result;
  for (const ScheduleEdge& edge : edges) {
    result.push_back({edge.ranks, memory.of(edge.bulk), edge.algorithms});
  }
  return result;
}

}  // namespace rondo::detail
