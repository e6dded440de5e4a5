#include "cuda/engine/control_segment.hpp"

#include <algorithm>
#include <utility>

namespace rondo::detail::gpu {
namespace {

std::size_t bytes_before_fifos(int size, int blocks) {
  const auto ranks = static_cast<std::size_t>(size);
  return (1 + ranks) * sizeof(FifoCounter) + ranks * sizeof(DevicePresence) +
         ranks * static_cast<std::size_t>(blocks) * sizeof(KernelFailure);
}

std::size_t bytes_of(const PinnedFifo& fifo) {
  return static_cast<std::size_t>(fifo.channels) * contiguous_fifo_bytes(fifo.geometry);
}

}  // namespace

std::size_t ControlSegment::bytes_for(int size, int blocks, const std::vector<PinnedFifo>& fifos) {
  std::size_t bytes = bytes_before_fifos(size, blocks);
  for (const PinnedFifo& fifo : fifos) bytes += bytes_of(fifo);
  return bytes;
}

ControlSegment::ControlSegment(PinnedMapping memory, int size, int blocks,
                               std::vector<PinnedFifo> fifos)
    : memory_(std::move(memory)), size_(size), blocks_(blocks), fifos_(std::move(fifos)) {}

// The layout: the abort word, which ranks have left, presences, failures, FIFOs.
Control ControlSegment::at(std::byte* base, int rank) const {
  const std::ptrdiff_t size = size_;
  const std::ptrdiff_t blocks = blocks_;
  auto* counters = reinterpret_cast<FifoCounter*>(base);
  auto* presences = reinterpret_cast<DevicePresence*>(counters + 1 + size);
  auto* failures = reinterpret_cast<KernelFailure*>(presences + size);
  return {counters, presences + rank, failures + rank * blocks};
}

FifoCounter& ControlSegment::abort_word() const { return *at(memory_.host(), 0).abort; }
DevicePresence& ControlSegment::presence(int rank) const {
  return *at(memory_.host(), rank).presence;
}
FifoCounter& ControlSegment::left(int rank) const {
  return *(at(memory_.host(), 0).abort + 1 + rank);
}
KernelFailure& ControlSegment::failure(int rank, int block) const {
  return at(memory_.host(), rank).failures[block];
}
Control ControlSegment::on_device(int rank) const { return at(memory_.device(), rank); }

FifoMemory ControlSegment::fifo_on_device(int edge, int channel) const {
  std::byte* base = memory_.device() + bytes_before_fifos(size_, blocks_);
  for (const PinnedFifo& fifo : fifos_) {
    if (fifo.edge == edge) {
      base += static_cast<std::size_t>(channel) * contiguous_fifo_bytes(fifo.geometry);
      return contiguous_fifo(base, fifo.geometry);
    }
    base += bytes_of(fifo);
  }
  return {};
}

}  // namespace rondo::detail::gpu
