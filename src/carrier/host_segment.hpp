// The memory that the ranks of one host share: the abort board, how many calls each rank has entered,
// and a FIFO for each edge between them.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/rank_pair.hpp"
#include "carrier/abort_board.hpp"
#include "carrier/memory.hpp"
#include "fifo/fifo.hpp"

namespace rondo::detail {

struct SegmentEdge {
  RankPair ranks;
  FifoGeometry geometry;
};

// Owns the mapping. All ranks of the host construct it with the same size and edges.
class HostSegment {
 public:
  // `size`: ranks of the communicator, on whatever host.
  static std::size_t bytes_for(int size, const std::vector<SegmentEdge>& edges);

  HostSegment(Mapping mapping, int size, std::vector<SegmentEdge> edges);

  [[nodiscard]] AbortBoard& board() const;
  // How many calls the rank has entered. Written by that rank alone; read by those that time out.
  [[nodiscard]] FifoCounter& calls_entered(int rank) const;
  // Whether this segment carries the edge, and its FIFO.
  [[nodiscard]] std::optional<FifoMemory> fifo(const RankPair& ranks) const;

 private:
  Mapping mapping_;
  int size_;
  std::vector<SegmentEdge> edges_;
};

}  // namespace rondo::detail
