// The memory that the ranks of one host share: the abort board, a presence and a bell for each
// rank, outboxes for one_shot, stages for data on their way inside the host, a FIFO for each edge
// between them, and a FIFO from each of them to each other for each use of pairwise edges.
//
// Most communicators use few of these parts. So only what ranks look at in all calls is reserved
// when the segment is made: the board, presences, bells and the counters of FIFOs. The rest has no
// pages until a rank uses it; that rank calls reserve() first.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/algorithm_set.hpp"
#include "base/pairwise_use.hpp"
#include "base/rank_pair.hpp"
#include "carrier/abort_board.hpp"
#include "carrier/bell.hpp"
#include "carrier/outbox.hpp"
#include "carrier/presence.hpp"
#include "carrier/reserving_turn.hpp"
#include "fifo/fifo.hpp"
#include "memory/shared_memory.hpp"

namespace rondo::detail {

struct SegmentEdge {
  RankPair ranks;
  FifoGeometry geometry;
  AlgorithmSet algorithms;  // that use it
};

// Part of a segment.
struct SegmentPart {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

struct SegmentPlan {
  int size = 0;                    // ranks of the communicator, on all hosts
  std::size_t one_shot_bytes = 0;  // that an outbox holds; 0: no outboxes
  std::vector<SegmentEdge> edges;
  int sharing = 0;                            // ranks of this host, which have stages
  std::size_t stage_bytes = 0;                // of each stage, a multiple of 256; 0: no stages
  ByPairwiseUse<FifoGeometry> pairwise = {};  // of the FIFOs between any two ranks of this host
  int pairwise_ranks = 0;                     // how many ranks have pairwise edges

  // The size of the segment, and that of the part of it that is reserved when it is made.
  [[nodiscard]] std::size_t bytes() const;
  [[nodiscard]] std::size_t reserved_bytes() const;
};

// Owns the mapping. All ranks of the host construct it with the same plan.
class HostSegment {
 public:
  HostSegment(Mapping mapping, SegmentPlan plan);

  [[nodiscard]] AbortBoard& board() const;
  [[nodiscard]] ReservingTurn& reserving_turn() const;
  [[nodiscard]] Presence& presence(int rank) const;
  [[nodiscard]] Bell& bell(int rank) const;
  // Outboxes alternate: call number k of one_shot uses half k mod 2.
  [[nodiscard]] OutboxHeader* outbox(int rank, std::uint64_t number) const;
  [[nodiscard]] std::size_t one_shot_bytes() const { return plan_.one_shot_bytes; }
  // Returns the stage of the rank with number `index` among those of this host.
  [[nodiscard]] std::byte* stage(int index) const;
  [[nodiscard]] std::size_t stage_bytes() const { return plan_.stage_bytes; }
  // Returns the FIFO of the edge; nothing if this segment does not carry the edge.
  [[nodiscard]] std::optional<FifoMemory> fifo(const RankPair& ranks) const;
  // Returns the FIFO from one rank to another, which are named by their numbers among the ranks
  // that share the segment.
  [[nodiscard]] FifoMemory pairwise_fifo(PairwiseUse use, int from, int to) const;

  // These return what a rank has to reserve before it uses an outbox, its own stage, the slots of
  // an edge, or a pairwise FIFO. A rank reserves also what it only reads, even if another rank has
  // reserved it.
  [[nodiscard]] SegmentPart outboxes() const;
  [[nodiscard]] SegmentPart stage_of(int index) const;
  [[nodiscard]] SegmentPart slots_of(const RankPair& ranks) const;
  [[nodiscard]] SegmentPart pairwise(PairwiseUse use, int from, int to) const;
  // Throws TransportError (too little memory).
  void reserve(std::span<const SegmentPart> parts) const;

 private:
  Mapping mapping_;
  SegmentPlan plan_;
};

}  // namespace rondo::detail
