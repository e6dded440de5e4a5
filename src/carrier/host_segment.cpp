#include "carrier/host_segment.hpp"

#include <algorithm>

namespace rondo::detail {

std::size_t HostSegment::bytes_for(std::size_t edges, const FifoGeometry& geometry) {
  return sizeof(AbortBoard) + edges * contiguous_fifo_bytes(geometry);
}

HostSegment::HostSegment(Mapping mapping, std::vector<RankPair> edges, const FifoGeometry& geometry)
    : mapping_(std::move(mapping)), edges_(std::move(edges)), geometry_(geometry) {}

AbortBoard& HostSegment::board() const {
  // Zeroed pages are a clear board: it is an implicit-lifetime type.
  return *reinterpret_cast<AbortBoard*>(mapping_.data());
}

std::optional<FifoMemory> HostSegment::fifo(const RankPair& edge) const {
  const auto found = std::find(edges_.begin(), edges_.end(), edge);
  if (found == edges_.end()) return std::nullopt;
  const auto index = static_cast<std::size_t>(found - edges_.begin());
  return contiguous_fifo(
      mapping_.data() + sizeof(AbortBoard) + index * contiguous_fifo_bytes(geometry_), geometry_);
}

}  // namespace rondo::detail
