#include "carrier/host_segment.hpp"

#include <utility>

namespace rondo::detail {
namespace {

std::size_t bytes_before_fifos(int size) {
  return sizeof(AbortBoard) + static_cast<std::size_t>(size) * sizeof(FifoCounter);
}

}  // namespace

std::size_t HostSegment::bytes_for(int size, const std::vector<SegmentEdge>& edges) {
  std::size_t bytes = bytes_before_fifos(size);
  for (const SegmentEdge& edge : edges) bytes += contiguous_fifo_bytes(edge.geometry);
  return bytes;
}

HostSegment::HostSegment(Mapping mapping, int size, std::vector<SegmentEdge> edges)
    : mapping_(std::move(mapping)), size_(size), edges_(std::move(edges)) {}

AbortBoard& HostSegment::board() const {
  // Zeroed pages are a clear board: it is an implicit-lifetime type.
  return *reinterpret_cast<AbortBoard*>(mapping_.data());
}

FifoCounter& HostSegment::calls_entered(int rank) const {
  return reinterpret_cast<FifoCounter*>(mapping_.data() + sizeof(AbortBoard))[rank];
}

std::optional<FifoMemory> HostSegment::fifo(const RankPair& ranks) const {
  std::size_t offset = bytes_before_fifos(size_);
  for (const SegmentEdge& edge : edges_) {
    if (edge.ranks == ranks) return contiguous_fifo(mapping_.data() + offset, edge.geometry);
    offset += contiguous_fifo_bytes(edge.geometry);
  }
  return std::nullopt;
}

}  // namespace rondo::detail
