// The layout of the device memory that a rank shows to the others. All ranks compute the same
// layout for each rank, so that they only need to exchange one base address for each rank.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/index.hpp"
#include "fifo/fifo.hpp"
#include "topology/ring_order.hpp"

namespace rondo::detail::gpu {

// How many channels a pairwise edge to another host has: the pump carries slots one after the
// other.
inline constexpr int kPairwiseChannelsBetweenHosts = 1;

// A pairwise edge is one of its own, also where another edge joins the same two ranks.
inline bool is_pairwise(const ScheduleEdge& edge) {
  return edge.algorithms.has(Algorithm::pairwise);
}

// Sizes that all ranks agree on.
struct DeviceGeometry {
  int size = 1;
  int channels = 1;
  int off_ring_channels = 1;  // of off-ring edges
  int pairwise_channels = 1;  // of the edges between any two ranks of a host
  FifoGeometry ring;
  FifoGeometry off_ring;
  FifoGeometry pairwise;
  std::vector<int> hosts;       // by rank: the lowest rank of its host
  std::size_t inbox_units = 0;  // 0: no one_shot
  bool has_posts = false;       // for direct

  // The most blocks of a call: a sendrecv may send and receive on all channels of two edges.
  [[nodiscard]] int blocks() const { return std::max(channels, 2 * pairwise_channels); }
  [[nodiscard]] const FifoGeometry& fifo_of(const ScheduleEdge& edge) const {
    if (is_pairwise(edge)) return pairwise;
    return edge.in_ring() ? ring : off_ring;
  }
  [[nodiscard]] int channels_of(const ScheduleEdge& edge) const {
    if (is_pairwise(edge)) return pairwise_channels_between(edge.ranks.from, edge.ranks.to);
    return edge.in_ring() ? channels : off_ring_channels;
  }
  [[nodiscard]] int pairwise_channels_between(int from, int to) const {
    return same_host(from, to) ? pairwise_channels : kPairwiseChannelsBetweenHosts;
  }
  [[nodiscard]] bool same_host(int a, int b) const { return hosts[Index(a)] == hosts[Index(b)]; }
  // Returns how many channels every pairwise edge has at least.
  [[nodiscard]] int fewest_pairwise_channels() const {
    const bool one_host =
        std::all_of(hosts.begin(), hosts.end(), [this](int host) { return host == hosts[0]; });
    return one_host ? pairwise_channels : kPairwiseChannelsBetweenHosts;
  }
};

inline constexpr std::size_t kProbeWords = 512;

// The edges of `ring` and `naive`, as schedule_edges() gives them; then, for `pairwise`, an edge
// from every rank to every other.
std::vector<ScheduleEdge> edges_between_devices(const std::vector<int>& ring);

struct ExposedLayout {
  std::size_t probes = 0;  // kProbeWords from each rank
  std::size_t inbox = 0;
  std::size_t posts = 0;  // for each channel, from each rank
  // Where the counters of each edge within a host that begins or ends at the rank lie, by the
  // edge's number: heads where it begins; tail and slots where it ends; for one channel after the
  // other.
  std::vector<std::size_t> edges;
  // Only the rank's own kernels use it.
  std::size_t ring = 0;
  std::size_t states = 0;
  std::size_t to = 0;
  std::size_t from = 0;
  std::size_t pairwise_to = 0;
  std::size_t pairwise_from = 0;
  std::size_t borders = 0;  // of chunks that have sizes of their own
  std::size_t inboxes = 0;
  std::size_t posts_of_all = 0;
  std::size_t bytes = 0;
};

ExposedLayout layout_of(int rank, const std::vector<ScheduleEdge>& edges,
                        const DeviceGeometry& geometry);

// The FIFO of one channel of an edge. Both parts are addresses in the exposed memories of its two
// ranks.
FifoMemory fifo_between(std::byte* producer_part, std::byte* consumer_part, int channel,
                        const FifoGeometry& geometry);

}  // namespace rondo::detail::gpu
