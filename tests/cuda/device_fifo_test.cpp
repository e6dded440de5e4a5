// The FIFO contract for edges between devices, as wire_devices() lays them out, on the stand-in:
// p2p, ipc and pinned.

#include <memory>
#include <utility>
#include <vector>

#include "cuda/engine/control_segment.hpp"
#include "cuda/engine/exposed_layout.hpp"
#include "cuda/joining/shown_memory.hpp"
#include "tests/fifo/fifo_contract.hpp"

namespace rondo::detail {
namespace {

constexpr FifoGeometry kGeometry{1024, 4};

gpu::DeviceGeometry two_ranks() {
  gpu::DeviceGeometry geometry;
  geometry.size = 2;
  geometry.ring = geometry.off_ring = geometry.pairwise = kGeometry;
  geometry.hosts = {0, 0};
  return geometry;
}

class DeviceFifo {
 public:
  [[nodiscard]] static FifoGeometry geometry() { return kGeometry; }
  [[nodiscard]] static std::uint64_t capacity() { return kGeometry.slots; }
  SendEnd& send_end() { return send_; }
  RecvEnd& recv_end() { return recv_; }
  void drive() {}

 protected:
  SendEnd send_;
  RecvEnd recv_;
};

// The edge from rank 0 to rank 1 in the memory that both show: each finds its own part at its own
// address, and the other's where it has mapped it.
template <bool kSameProcess>
class Exposed : public DeviceFifo {
 public:
  Exposed() {
    std::byte* own[2];
    std::byte* of_other[2];
    for (int rank = 0; rank < 2; ++rank) {
      layouts_[rank] = gpu::layout_of(rank, edges_, two_ranks());
      memory_[rank] = gpu::allocate_to_show(rank, layouts_[rank].bytes);
      own[rank] = memory_[rank]->data();
    }
    for (int rank = 0; rank < 2; ++rank) {
      const gpu::ShownMemory shown = gpu::show(memory_[1 - rank], 1 - rank);
      of_other[rank] = gpu::map(shown, kSameProcess, rank, mapped_[rank]);
    }
    std::size_t edge = 0;
    while (edges_[edge].ranks.from != 0 || edges_[edge].ranks.to != 1) ++edge;
    const auto part = [&](std::byte* shown, int rank) {
      return shown + layouts_[rank].edges[edge];
    };
    send_ = SendEnd(gpu::fifo_between(part(own[0], 0), part(of_other[0], 1), 0, kGeometry));
    recv_ = RecvEnd(gpu::fifo_between(part(of_other[1], 0), part(own[1], 1), 0, kGeometry));
  }

 private:
  std::vector<ScheduleEdge> edges_ = gpu::edges_between_devices({0, 1});
  gpu::ExposedLayout layouts_[2];
  std::shared_ptr<gpu::DeviceMemory> memory_[2];
  gpu::MappedMemory mapped_[2];
};

class Pinned : public DeviceFifo {
 public:
  Pinned() {
    const FifoMemory fifo = control_.fifo_on_device(3, 1);
    send_ = SendEnd(fifo);
    recv_ = RecvEnd(fifo);
  }

 private:
  // Between other edges and channels.
  static std::vector<gpu::PinnedFifo> fifos() {
    return {{1, {512, 3}, 2}, {3, kGeometry, 2}, {4, {64, 2}, 1}};
  }
  gpu::ControlSegment control_{
      gpu::PinnedMapping(0, map_private(gpu::ControlSegment::bytes_for(2, 2, fifos()))), 2, 2,
      fifos()};
};

INSTANTIATE_TYPED_TEST_SUITE_P(P2p, FifoContract, Exposed<true>);
INSTANTIATE_TYPED_TEST_SUITE_P(Ipc, FifoContract, Exposed<false>);
INSTANTIATE_TYPED_TEST_SUITE_P(Pinned, FifoContract, Pinned);

}  // namespace
}  // namespace rondo::detail
