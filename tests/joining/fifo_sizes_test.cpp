// Slots fit the link or the cache, and many ranks on one host take little memory.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "joining/fifo_sizes.hpp"

namespace rondo::detail {
namespace {

TEST(Geometries, FitTheLinkAndSpareTheMemory) {
  constexpr std::uint64_t kCache = 1 << 20;
  const LinkFacts gigabit{50, 119};
  const LinkFacts fast{5, 12000};
  for (const LinkFacts& link : {gigabit, fast}) {
    const Geometries chosen = choose_geometries({}, kCache, link, {2, 2});
    EXPECT_EQ(chosen.memory.ring.slot_bytes, chosen.link.ring.slot_bytes);
    EXPECT_EQ(chosen.memory.off_ring.slot_bytes, chosen.link.off_ring.slot_bytes);
    EXPECT_LE(chosen.memory.ring.slots, chosen.link.ring.slots);
    EXPECT_LE(chosen.link.off_ring.slot_bytes, chosen.link.ring.slot_bytes);
    // The link is full while a rank naps.
    EXPECT_GE(static_cast<double>(chosen.link.ring.slot_bytes * chosen.link.ring.slots),
              link.bytes_per_us * std::min(1000.0, 8.0 * 1024 * 1024 / link.bytes_per_us));
    EXPECT_LE(contiguous_fifo_bytes(chosen.memory.ring), std::uint64_t{5} << 18U);
    EXPECT_LE(contiguous_fifo_bytes(chosen.memory.off_ring), std::uint64_t{5} << 16U);
  }
  EXPECT_EQ(choose_geometries({}, kCache, gigabit, {2, 2}).link.ring.slot_bytes, 32768U);
  const FifoGeometry widest = choose_geometries({}, kCache, fast, {2, 2}).link.ring;
  const LinkFacts boundless{1e18, 1e18};  // as rondo-sim may ask for
  const FifoGeometry of_boundless = choose_geometries({}, kCache, boundless, {2, 2}).link.ring;
  EXPECT_EQ(of_boundless.slot_bytes, widest.slot_bytes);
  EXPECT_EQ(of_boundless.slots, widest.slots);
  const Geometries ordered =
      choose_geometries({.slot_bytes = 192, .slots = 5}, kCache, gigabit, {2, 2});
  for (const EdgeGeometries& edges : {ordered.memory, ordered.link}) {
    for (const bool in_ring : {true, false}) {
      EXPECT_EQ(edges.of(in_ring).slot_bytes, 192U);
      EXPECT_EQ(edges.of(in_ring).slots, 5U);
    }
  }
}

// Up to 128 ranks take at most 26 MiB, however large the caches and however fast the links.
TEST(Geometries, ManyRanksOfAHostTakeLittleMemory) {
  constexpr std::uint64_t kCache = std::uint64_t{2} << 20U;
  for (const int ranks : {2, 8, 16, 43, 64, 128}) {
    std::vector<int> ring(static_cast<std::size_t>(ranks));
    std::iota(ring.begin(), ring.end(), 0);
    const std::vector<ScheduleEdge> edges =
        schedule_edges(ring, {Algorithm::ring, Algorithm::naive, Algorithm::recursive_doubling});
    LocalEdges local;
    for (const ScheduleEdge& edge : edges) local.count(edge);
    local.ranks = static_cast<std::uint64_t>(ranks);
    for (const std::optional<LinkFacts>& link :
         {std::optional<LinkFacts>(), std::optional(LinkFacts{50, 119}),
          std::optional(LinkFacts{5, 12000})}) {
      const Geometries chosen = choose_geometries({}, kCache, link, local);
      const SegmentPlan plan{ranks, one_shot_limit_bytes(ranks),
                             with_geometry(edges, chosen.memory), ranks,
                             stage_bytes_for(static_cast<std::size_t>(ranks))};
      EXPECT_GE(plan.stage_bytes, 4 * static_cast<std::size_t>(ranks) * 64);
      EXPECT_LE(plan.bytes(), std::size_t{27} << 20U) << ranks;
      // Before any call.
      EXPECT_LE(plan.reserved_bytes(), static_cast<std::size_t>(1 + ranks) * 3072) << ranks;
      const FifoGeometry exchanges = chosen.pairwise[Index(PairwiseUse::exchanges)];
      const SegmentPlan pairwise{ranks, 0, {}, 0, 0, {exchanges, {}}, ranks};
      EXPECT_LE(pairwise.bytes() - pairwise.reserved_bytes(), std::size_t{200} << 20U) << ranks;
      // However large and many the slots are that a user names.
      const Geometries large =
          choose_geometries({.slot_bytes = 1U << 22U, .slots = 4096}, kCache, link, local);
      const SegmentPlan named{ranks, 0, {}, 0, 0, {large.pairwise[0], {}}, ranks};
      EXPECT_LE(named.bytes() - named.reserved_bytes(), std::size_t{256} << 20U) << ranks;
      if (ranks <= 8 && !link) {
        EXPECT_EQ(chosen.memory.ring.slot_bytes, 65536U);
      }
    }
  }
}

// With fewer, what its schedule publishes before it takes anything would not fit.
TEST(Geometries, ATreeHasTheSlotsThatItNeeds) {
  for (const std::uint32_t slots : {2U, 3U, 6U, 7U, 64U}) {
    const Geometries chosen = choose_geometries({.slots = slots}, 1U << 20U, std::nullopt, {});
    EXPECT_EQ(chosen.pairwise[Index(PairwiseUse::exchanges)].slots, slots);
    EXPECT_EQ(chosen.pairwise[Index(PairwiseUse::trees)].slots, std::max(slots, 6U));
  }
  for (int ranks = 1; ranks <= 128; ++ranks) {
    LocalEdges local;
    local.ranks = static_cast<std::uint64_t>(ranks);
    // The edges that a tree's schedules use.
    std::size_t edges = 0;
    for (int distance = 1; distance < ranks; distance *= 2) {
      edges += 2 * static_cast<std::size_t>(ranks);
    }
    for (const CommunicatorOptions& options :
         {CommunicatorOptions{}, CommunicatorOptions{.slot_bytes = 1U << 22U, .slots = 4096}}) {
      const FifoGeometry trees = choose_geometries(options, 1U << 20U, std::nullopt, local)
                                     .pairwise[Index(PairwiseUse::trees)];
      EXPECT_LE(edges * trees.slots * trees.slot_bytes, std::size_t{32} << 20U) << ranks;
      EXPECT_GE(trees.slots, 6U);
    }
  }
}

TEST(Geometries, TooManyRanksHaveNoStages) {
  EXPECT_EQ(stage_bytes_for(2), std::size_t{2} << 20U);
  EXPECT_EQ(stage_bytes_for(128), std::size_t{32} << 10U);
  EXPECT_EQ(stage_bytes_for(129), 0U);
}

TEST(Geometries, AOneShotReadsAtMostHalfAMegabyte) {
  EXPECT_EQ(one_shot_limit_bytes(2), std::size_t{64} << 10U);
  for (const int size : {1, 3, 8, 64, 1000}) {
    EXPECT_LE(one_shot_limit_bytes(size) * static_cast<std::size_t>(size), std::size_t{512} << 10U);
    EXPECT_EQ(one_shot_limit_bytes(size) % 64, 0U);
  }
}

TEST(Geometries, ANapIsAsLongAsASliceTakesOnASlowLink) {
  EXPECT_EQ(naps_for({50, 119}, {8192, 16}).length.count(), 68);
  EXPECT_EQ(naps_for({50, 119}, {32768, 16}).length.count(), 150)
      << "no longer, on however slow a link";
  EXPECT_EQ(naps_for({5, 12000}, {131072, 16}).length.count(), 0)
      << "what is under way would end before it";
  EXPECT_EQ(naps_for({50, 300}, {131072, 16}).length.count(), 0) << "the wire would wait for it";
  EXPECT_EQ(naps_for({50, 119}, {8192, 16}).from_chunk_bytes, 119'000U) << "a millisecond";
}

}  // namespace
}  // namespace rondo::detail
