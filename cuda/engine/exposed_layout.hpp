// The layout of the device memory that a rank shows to the others. All ranks compute the same layout for each rank,
// so that they only need to exchange one base address for each rank.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "fifo/fifo.hpp"
#include "topology/ring_order.hpp"

namespace rondo::detail::gpu {

// Edges for `pairwise` are apart from those of the other algorithms between the same ranks.
inline bool is_pairwise(const ScheduleEdge& edge) {
  return edge.algorithms.has(Algorithm::pairwise);
}

// Sizes that all ranks agree on.
struct DeviceGeometry {
  int size = 1;
  int channels = 1;
  int off_ring_channels = 1;  // of off-ring edges
  int pairwise_channels =
      1;  // of the edges between any two ranks: a sendrecv uses as many to send as to receive
  FifoGeometry ring;
  FifoGeometry off_ring;
  FifoGeometry pairwise;
  std::vector<int> hosts;       // by rank: the lowest rank of its host
  std::size_t inbox_units = 0;  // 0: no one_shot
  bool has_posts = false;       // for direct

  // The most that a call has.
  [[nodiscard]] int blocks() const { return std::max(channels, 2 * pairwise_channels); }
  [[nodiscard]] const FifoGeometry& fifo_of(const ScheduleEdge& edge) const {
    if (is_pairwise(edge)) return pairwise;
    return edge.in_ring() ? ring : off_ring;
  }
  [[nodiscard]] int channels_of(const ScheduleEdge& edge) const {
    if (is_pairwise(edge)) return pairwise_channels;
    return edge.in_ring() ? channels : off_ring_channels;
  }
  [[nodiscard]] bool within_host(const ScheduleEdge& edge) const {
    return hosts[static_cast<std::size_t>(edge.ranks.from)] ==
           hosts[static_cast<std::size_t>(edge.ranks.to)];
  }
};

inline constexpr std::size_t kProbeWords = 512;

// The edges of `ring` and `naive`, as schedule_edges(); then an edge from every rank to every other, for `pairwise`.
std::vector<ScheduleEdge> edges_between_devices(const std::vector<int>& ring);

struct ExposedLayout {
  std::size_t probes = 0;  // kProbeWords from each rank
  std::size_t inbox = 0;
  std::size_t posts = 0;  // for each channel, from each rank
  // Of each edge within a host that begins or ends at the rank, by its number: heads where it begins; tail and slots
  // where it ends; for one channel after the other.
  std::vector<std::size_t> edges;
  // For the rank's own kernels alone.
  std::size_t ring = 0;
  std::size_t states = 0;
  std::size_t to = 0;
  std::size_t from = 0;
  std::size_t pairwise_to = 0;
  std::size_t pairwise_from = 0;
  std::size_t borders =
      0;  // of the chunks of the call in progress, if they have sizes of their own
  std::size_t inboxes = 0;
  std::size_t posts_of_all = 0;
  std::size_t bytes = 0;
};

ExposedLayout layout_of(int rank, const std::vector<ScheduleEdge>& edges,
                        const DeviceGeometry& geometry);

// The FIFO of one channel of an edge. Both parts are addresses in the exposed memories of its two ranks.
FifoMemory fifo_between(std::byte* producer_part, std::byte* consumer_part, int channel,
                        const FifoGeometry& geometry);

}  // namespace rondo::detail::gpu
