// The memory that the ranks of one host share: the abort board and a FIFO for each edge between
// them.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/rank_pair.hpp"
#include "carrier/abort_board.hpp"
#include "carrier/memory.hpp"
#include "fifo/fifo.hpp"

namespace rondo::detail {

// Owns the mapping. All ranks of the host construct it with the same edges in the same order.
class HostSegment {
 public:
  static std::size_t bytes_for(std::size_t edges, const FifoGeometry& geometry);

  HostSegment(Mapping mapping, std::vector<RankPair> edges, const FifoGeometry& geometry);

  [[nodiscard]] AbortBoard& board() const;
  // Whether this segment carries the edge, and its FIFO.
  [[nodiscard]] std::optional<FifoMemory> fifo(const RankPair& edge) const;

 private:
  Mapping mapping_;
  std::vector<RankPair> edges_;
  FifoGeometry geometry_;
};

}  // namespace rondo::detail
