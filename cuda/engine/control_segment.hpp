// Host memory that the ranks of one host share, and that their devices reach: whether the
// communicator has ended, the call that each rank has shown last, which ranks have left, the
// failures of blocks, and the FIFOs of pinned edges.
#pragma once

#include <cstddef>
#include <vector>

#include "cuda/engine/pinned_mapping.hpp"
#include "cuda/protocol/control.hpp"

namespace rondo::detail::gpu {

struct PinnedFifo {
  int edge = 0;  // its number
  FifoGeometry geometry;
  int channels = 0;
};

class ControlSegment {
 public:
  static std::size_t bytes_for(int size, int blocks, const std::vector<PinnedFifo>& fifos);

  ControlSegment() = default;
  // All ranks of the host construct it with the same size, blocks of a call and FIFOs.
  ControlSegment(PinnedMapping memory, int size, int blocks, std::vector<PinnedFifo> fifos);

  // As the host sees them.
  [[nodiscard]] FifoCounter& abort_word() const;
  [[nodiscard]] DevicePresence& presence(int rank) const;
  // Not zero once the rank has left the group in good order. Written by that rank alone.
  [[nodiscard]] FifoCounter& left(int rank) const;
  [[nodiscard]] KernelFailure& failure(int rank, int block) const;
  // As kernels see it.
  [[nodiscard]] Control on_device(int rank) const;
  // `edge`: the number of an edge that this segment was made for.
  [[nodiscard]] FifoMemory fifo_on_device(int edge, int channel) const;

 private:
  [[nodiscard]] Control at(std::byte* base, int rank) const;

  PinnedMapping memory_;
  int size_ = 0;
  int blocks_ = 0;
  std::vector<PinnedFifo> fifos_;
};

}  // namespace rondo::detail::gpu
