// Which parts of a segment have memory, and when.

#include <sys/stat.h>

#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/options.hpp>

#include "carrier/host_segment.hpp"
#include "joining/wire.hpp"

namespace rondo::detail {
namespace {

constexpr FifoGeometry kFifo{65536, 8};

SegmentPlan plan_of_two() {
  const SegmentEdge there{{0, 1}, kFifo, {Algorithm::ring}};
  const SegmentEdge back{{1, 0}, kFifo, {Algorithm::ring, Algorithm::naive}};
  return {2, 4096, {there, back}, 2, 8192, {{{4096, 4}, {2048, 6}}}, 2};
}

std::size_t memory_of(const FileDescriptor& file) {
  struct stat facts{};
  EXPECT_EQ(::fstat(file.get(), &facts), 0);
  return static_cast<std::size_t>(facts.st_blocks) * 512;
}

TEST(HostSegment, GetsMemoryForWhatIsReserved) {
  const SegmentPlan plan = plan_of_two();
  SharedObject object = create_shared(plan.bytes(), plan.reserved_bytes());
  EXPECT_EQ(memory_of(object.file), plan.reserved_bytes());
  EXPECT_LE(plan.reserved_bytes(), 2 * page_bytes());
  const HostSegment segment(std::move(object.mapping), plan);
  std::size_t expected = plan.reserved_bytes();
  for (const SegmentPart& part :
       {segment.outboxes(), segment.stage_of(0), segment.stage_of(1), segment.slots_of({0, 1}),
        segment.slots_of({1, 0}), segment.pairwise(PairwiseUse::exchanges, 0, 1),
        segment.pairwise(PairwiseUse::exchanges, 1, 0), segment.pairwise(PairwiseUse::trees, 0, 1),
        segment.pairwise(PairwiseUse::trees, 1, 0)}) {
    ASSERT_GT(part.bytes, 0U);
    for (int times = 0; times < 2; ++times) segment.reserve(std::array{part});
    expected += part.bytes;
    EXPECT_EQ(memory_of(object.file), expected);
  }
}

TEST(ReservingTurn, OneRankHasItAtATime) {
  ReservingTurn turn;
  int inside = 0;
  int times = 0;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        {
          const ReservingScope scope(turn, 0);
          if (!scope.has_it()) continue;  // a machine that is very busy
          EXPECT_EQ(++inside, 1);
          --inside;
          ++times;
        }
        std::this_thread::yield();
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  EXPECT_GT(times, 4);
}

// A rank that was killed while it had the turn keeps the others waiting, and no longer.
TEST(ReservingTurn, AnotherRankGoesOnWithoutIt) {
  ReservingTurn turn;
  constexpr std::chrono::milliseconds kShort{1};
  ASSERT_TRUE(turn.take(kShort));
  EXPECT_FALSE(turn.take(kShort));
  {
    const ReservingScope without(turn, 0);
  }
  EXPECT_FALSE(turn.take(kShort)) << "the scope has given back what it did not have";
  turn.give_back();
  EXPECT_TRUE(turn.take(kShort));
}

// Every byte that a rank writes lies in memory that it has reserved.
TEST(HostSegment, ItsPartsAreWhatTheyAreFor) {
  const SegmentPlan plan = plan_of_two();
  const HostSegment segment(map_private(plan.bytes()), plan);
  const auto* base = reinterpret_cast<const std::byte*>(&segment.board());
  const auto expect_in = [&](const SegmentPart& part, const void* data, std::size_t bytes) {
    const auto begin = static_cast<std::size_t>(static_cast<const std::byte*>(data) - base);
    EXPECT_GE(begin, part.offset);
    EXPECT_LE(begin + bytes, part.offset + part.bytes);
  };
  const SegmentPart reserved{0, plan.reserved_bytes()};
  for (const int rank : {0, 1}) {
    expect_in(reserved, &segment.presence(rank), sizeof(Presence));
    expect_in(reserved, &segment.reserving_turn(), sizeof(ReservingTurn));
    expect_in(reserved, &segment.bell(rank), sizeof(Bell));
    for (const std::uint64_t half : {0U, 1U}) {
      expect_in(segment.outboxes(), segment.outbox(rank, half), box_stride(plan.one_shot_bytes));
    }
    expect_in(segment.stage_of(rank), segment.stage(rank), plan.stage_bytes);
    const RankPair edge{rank, 1 - rank};
    const FifoMemory fifo = *segment.fifo(edge);
    expect_in(reserved, fifo.head, sizeof(FifoCounter));
    expect_in(reserved, fifo.tail, sizeof(FifoCounter));
    expect_in(segment.slots_of(edge), fifo.slots, slots_bytes(kFifo));
    for (const PairwiseUse use : {PairwiseUse::exchanges, PairwiseUse::trees}) {
      const FifoMemory pairwise = segment.pairwise_fifo(use, rank, 1 - rank);
      expect_in(segment.pairwise(use, rank, 1 - rank), pairwise.tail,
                contiguous_fifo_bytes(plan.pairwise[Index(use)]));
    }
  }
}

// What a rank's calls by an algorithm use is among what it reserves in the first of them.
TEST(HostSegment, ARankReservesTheSlotsOfItsEdges) {
  for (const Wiring& wiring : wire_local_group(4, {})) {
    const auto reserves = [&](Algorithm algorithm, const SegmentPart& part) {
      for (const Links::UsedPart& one : wiring.links.used_parts) {
        if (one.users.has(algorithm) && one.part.offset == part.offset) return true;
      }
      return false;
    };
    const HostSegment& segment = *wiring.links.segment;
    EXPECT_TRUE(reserves(Algorithm::one_shot, segment.outboxes()));
    for (const Edge& edge : wiring.topology.edges) {
      if (edge.from != wiring.rank && edge.to != wiring.rank) continue;
      const SegmentPart slots = segment.slots_of({edge.from, edge.to});
      const bool by_naive = edge.from == 0 || edge.to == 0;
      EXPECT_TRUE(!edge.in_ring || reserves(Algorithm::ring, slots));
      EXPECT_TRUE(!by_naive || reserves(Algorithm::naive, slots));
    }
  }
}

}  // namespace
}  // namespace rondo::detail
