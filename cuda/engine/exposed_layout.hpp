// The layout of the device memory that a rank shows to the others. All ranks compute the same layout for each rank,
// so that they only need to exchange one base address for each rank.
#pragma once

#include <cstddef>
#include <vector>

#include "fifo/fifo.hpp"
#include "topology/ring_order.hpp"

namespace rondo::detail::gpu {

// Sizes that all ranks agree on.
struct DeviceGeometry {
  int size = 1;
  int channels = 1;
  int off_ring_channels = 1;  // of off-ring edges
  FifoGeometry ring;
  FifoGeometry off_ring;
  std::size_t inbox_units = 0;  // 0: no one_shot
  bool has_posts = false;       // for direct

  [[nodiscard]] const FifoGeometry& fifo_of(const ScheduleEdge& edge) const {
    return edge.in_ring() ? ring : off_ring;
  }
  [[nodiscard]] int channels_of(const ScheduleEdge& edge) const {
    return edge.in_ring() ? channels : off_ring_channels;
  }
};

inline constexpr std::size_t kProbeWords = 512;

struct ExposedLayout {
  std::size_t probes = 0;  // kProbeWords from each rank
  std::size_t inbox = 0;
  std::size_t posts = 0;  // for each channel, from each rank
  // Of each edge that begins or ends at the rank, by its number: heads where it begins; tail and slots
  // where it ends; for one channel after the other.
  std::vector<std::size_t> edges;
  // For the rank's own kernels alone.
  std::size_t ring = 0;
  std::size_t states = 0;
  std::size_t to = 0;
  std::size_t from = 0;
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
