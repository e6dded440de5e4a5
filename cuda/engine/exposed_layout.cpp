#include "cuda/engine/exposed_layout.hpp"

#include <cstdint>

#include "base/index.hpp"
#include "cuda/protocol/arguments.hpp"
#include "cuda/protocol/one_shot.hpp"

namespace rondo::detail::gpu {
namespace {

std::size_t consumer_bytes(const FifoGeometry& geometry) {
  const std::size_t slots = geometry.slots * (sizeof(SlotHeader) + geometry.slot_bytes);
  return sizeof(FifoCounter) + (slots + kCounterSpacing - 1) / kCounterSpacing * kCounterSpacing;
}

}  // namespace

std::vector<ScheduleEdge> edges_between_devices(const std::vector<int>& ring) {
  std::vector<ScheduleEdge> edges = schedule_edges(ring, {Algorithm::ring, Algorithm::naive});
  for (const int from : ring) {
    for (const int to : ring) {
      if (from != to) edges.push_back({{from, to}, {Algorithm::pairwise}});
    }
  }
  return edges;
}

ExposedLayout layout_of(int rank, const std::vector<ScheduleEdge>& edges,
                        const DeviceGeometry& geometry) {
  ExposedLayout layout;
  const auto take = [&layout](std::size_t bytes) {
    const std::size_t at = layout.bytes;
    layout.bytes += (bytes + kCounterSpacing - 1) / kCounterSpacing * kCounterSpacing;
    return at;
  };
  const auto size = static_cast<std::size_t>(geometry.size);
  const std::size_t ends = static_cast<std::size_t>(geometry.channels) * size;
  const std::size_t pairwise_ends = static_cast<std::size_t>(geometry.pairwise_channels) * size;
  layout.probes = take(size * kProbeWords * sizeof(std::uint64_t));
  layout.inbox = take(
      geometry.inbox_units == 0
          ? 0
          : sizeof(Words) * inbox_words(geometry.inbox_units, geometry.channels, geometry.size));
  layout.posts = take(geometry.has_posts ? ends * sizeof(Post) : 0);
  for (const ScheduleEdge& edge : edges) {
    const auto channels = static_cast<std::size_t>(geometry.channels_of(edge));
    std::size_t bytes = 0;
    if (geometry.same_host(edge.ranks.from, edge.ranks.to)) {
      if (edge.ranks.from == rank) bytes = channels * sizeof(FifoCounter);
      if (edge.ranks.to == rank) bytes = channels * consumer_bytes(geometry.fifo_of(edge));
    }
    layout.edges.push_back(take(bytes));
  }
  layout.ring = take(size * sizeof(std::int32_t));
  layout.states = take(static_cast<std::size_t>(geometry.blocks()) * sizeof(BlockState));
  layout.to = take(ends * sizeof(SendEnd));
  layout.from = take(ends * sizeof(RecvEnd));
  layout.pairwise_to = take(pairwise_ends * sizeof(SendEnd));
  layout.pairwise_from = take(pairwise_ends * sizeof(RecvEnd));
  layout.borders = take((size + 1) * sizeof(std::uint64_t));
  layout.inboxes = take(size * sizeof(std::byte*));
  layout.posts_of_all = take(size * sizeof(Post*));
  return layout;
}

FifoMemory fifo_between(std::byte* producer_part, std::byte* consumer_part, int channel,
                        const FifoGeometry& geometry) {
  const Index index(channel);
  std::byte* consumer = consumer_part + index * consumer_bytes(geometry);
  return {reinterpret_cast<FifoCounter*>(consumer),
          reinterpret_cast<FifoCounter*>(producer_part) + index, consumer + sizeof(FifoCounter),
          geometry};
}

}  // namespace rondo::detail::gpu
