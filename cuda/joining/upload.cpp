#include "cuda/joining/upload.hpp"

#include "base/index.hpp"
#include "joining/connect.hpp"

namespace rondo::detail::gpu {
namespace {

class DeviceTables {
 public:
  DeviceTables(DeviceWiring& wiring, const std::vector<ScheduleEdge>& edges,
               const std::vector<Edge>& settled, const std::vector<ExposedLayout>& layouts,
               const Reach& reach)
      : wiring_(wiring), edges_(edges), settled_(settled), layouts_(layouts), reach_(reach) {}

  PumpEdges run() {
    make_ends();
    put_tables();
    return std::move(pumped_);
  }

 private:
  [[nodiscard]] const DeviceGeometry& geometry() const { return wiring_.geometry; }
  [[nodiscard]] const ExposedLayout& layout(int rank) const { return layouts_[Index(rank)]; }
  [[nodiscard]] std::byte* shown(int rank) const { return reach_.shown[Index(rank)]; }

  void make_ends() {
    const auto size = static_cast<std::size_t>(geometry().size);
    const std::size_t ends = static_cast<std::size_t>(geometry().channels) * size;
    const std::size_t pairwise_ends = static_cast<std::size_t>(geometry().pairwise_channels) * size;
    to_.resize(ends);
    from_.resize(ends);
    pairwise_to_.resize(pairwise_ends);
    pairwise_from_.resize(pairwise_ends);
    take_pumped_memory();
    const std::vector<std::size_t> position = positions_of(wiring_.topology.ring);
    for (std::size_t i = 0; i < edges_.size(); ++i) {
      const auto [sender, receiver] = edges_[i].ranks;
      if (sender != wiring_.rank && receiver != wiring_.rank) continue;
      std::vector<SendEnd>& to = is_pairwise(edges_[i]) ? pairwise_to_ : to_;
      std::vector<RecvEnd>& from = is_pairwise(edges_[i]) ? pairwise_from_ : from_;
      for (int channel = 0; channel < geometry().channels_of(edges_[i]); ++channel) {
        const FifoMemory fifo = fifo_of(i, channel);
        const auto at = [&](int peer) {
          return static_cast<std::size_t>(channel) * size + position[Index(peer)];
        };
        if (sender == wiring_.rank) {
          to[at(receiver)] = SendEnd(fifo);
        } else {
          from[at(sender)] = RecvEnd(fifo);
        }
      }
    }
  }

  // One channel of an edge of this rank, as its kernels see it.
  FifoMemory fifo_of(std::size_t edge, int channel) {
    const auto [sender, receiver] = edges_[edge].ranks;
    const FifoGeometry& sizes = geometry().fifo_of(edges_[edge]);
    const Carrier carrier = settled_[edge].carrier;
    if (carrier == Carrier::mpi) return fifo_to_pump(edges_[edge], channel, sizes);
    if (carrier == Carrier::pinned) {
      return wiring_.control.fifo_on_device(static_cast<int>(edge), channel);
    }
    const auto part = [&](int rank) { return shown(rank) + layout(rank).edges[edge]; };
    return fifo_between(part(sender), part(receiver), channel, sizes);
  }

  [[nodiscard]] bool is_pumped(std::size_t edge) const {
    const auto [sender, receiver] = edges_[edge].ranks;
    return settled_[edge].carrier == Carrier::mpi &&
           (sender == wiring_.rank || receiver == wiring_.rank);
  }

  // FIFOs whose other end the pump has lie in pinned host memory.
  void take_pumped_memory() {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < edges_.size(); ++i) {
      if (!is_pumped(i)) continue;
      bytes += static_cast<std::size_t>(geometry().channels_of(edges_[i])) *
               contiguous_fifo_bytes(geometry().fifo_of(edges_[i]));
    }
    if (bytes > 0) wiring_.pumped = PinnedMapping(wiring_.device, map_private(bytes));
  }

  FifoMemory fifo_to_pump(const ScheduleEdge& edge, int channel, const FifoGeometry& sizes) {
    const std::size_t offset = pumped_bytes_;
    pumped_bytes_ += contiguous_fifo_bytes(sizes);
    const FifoMemory on_host = contiguous_fifo(wiring_.pumped.host() + offset, sizes);
    const auto [sender, receiver] = edge.ranks;
    // A pump knows an edge by its peer and channel alone.
    if (is_pairwise(edge)) channel += geometry().channels;
    PumpEdges& edges = is_pairwise(edge) ? wiring_.unopened : pumped_;
    if (sender == wiring_.rank) {
      edges.out.push_back({receiver, edge.algorithms, channel, RecvEnd(on_host)});
    } else {
      edges.in.push_back({sender, edge.algorithms, channel, SendEnd(on_host)});
    }
    return contiguous_fifo(wiring_.pumped.device() + offset, sizes);
  }

  void put_tables() {
    std::byte* base = wiring_.exposed->data();
    const ExposedLayout& mine = layout(wiring_.rank);
    std::vector<std::byte*> inboxes;
    std::vector<std::byte*> posts;
    for (int rank = 0; rank < geometry().size; ++rank) {
      std::byte* theirs = shown(rank);
      inboxes.push_back(theirs == nullptr ? nullptr : theirs + layout(rank).inbox);
      posts.push_back(theirs == nullptr ? nullptr : theirs + layout(rank).posts);
    }
    const auto put_table = [&](std::size_t offset, const auto& table) {
      api::copy(base + offset, table.data(), table.size() * sizeof(table[0]));
    };
    put_table(mine.ring, wiring_.topology.ring);
    put_table(mine.to, to_);
    put_table(mine.from, from_);
    put_table(mine.pairwise_to, pairwise_to_);
    put_table(mine.pairwise_from, pairwise_from_);
    put_table(mine.inboxes, inboxes);
    put_table(mine.posts_of_all, posts);
    RankView& view = wiring_.view;
    view.rank = wiring_.rank;
    view.size = geometry().size;
    view.ring = reinterpret_cast<std::int32_t*>(base + mine.ring);
    view.blocks = reinterpret_cast<BlockState*>(base + mine.states);
    view.to = reinterpret_cast<SendEnd*>(base + mine.to);
    view.from = reinterpret_cast<RecvEnd*>(base + mine.from);
    view.pairwise_to = reinterpret_cast<SendEnd*>(base + mine.pairwise_to);
    view.pairwise_from = reinterpret_cast<RecvEnd*>(base + mine.pairwise_from);
    wiring_.borders = reinterpret_cast<std::uint64_t*>(base + mine.borders);
    view.inboxes = reinterpret_cast<std::byte* const*>(base + mine.inboxes);
    view.inbox_units = geometry().inbox_units;
    view.posts = reinterpret_cast<Post* const*>(base + mine.posts_of_all);
    view.control = wiring_.control.on_device(wiring_.rank);
  }

  DeviceWiring& wiring_;
  const std::vector<ScheduleEdge>& edges_;
  const std::vector<Edge>& settled_;
  const std::vector<ExposedLayout>& layouts_;
  const Reach& reach_;
  std::vector<SendEnd> to_;  // by channel, then by position
  std::vector<RecvEnd> from_;
  std::vector<SendEnd> pairwise_to_;
  std::vector<RecvEnd> pairwise_from_;
  PumpEdges pumped_;
  std::size_t pumped_bytes_ = 0;  // of their memory, handed out so far
};

}  // namespace

PumpEdges upload_ends(DeviceWiring& wiring, const std::vector<ScheduleEdge>& edges,
                      const std::vector<Edge>& settled, const std::vector<ExposedLayout>& layouts,
                      const Reach& reach) {
  return DeviceTables(wiring, edges, settled, layouts, reach).run();
}

}  // namespace rondo::detail::gpu
