#include "engine/pairwise_edges.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "memory/shared_memory.hpp"

namespace rondo::detail {
namespace {

// The edges that are made when ranks join have channel 0.
constexpr int kPairwiseChannel = 1;

class Opener {
 public:
  Opener(Wiring& wiring, int position)
      : wiring_(wiring),
        links_(wiring.links),
        position_(static_cast<std::size_t>(position)),
        peer_(wiring.topology.ring[position_]) {}

  // What has to be reserved before this edge is opened, if anything.
  void add_parts(bool sends, std::vector<SegmentPart>& parts) const {
    const bool is_open = sends ? links_.pairwise_to[position_].geometry().slots != 0
                               : links_.pairwise_from[position_].geometry().slots != 0;
    if (is_open || !wiring_.shares_memory(peer_)) return;
    const int from = sends ? wiring_.rank : peer_;
    const int to = sends ? peer_ : wiring_.rank;
    parts.push_back(links_.segment->pairwise(among_sharing(from), among_sharing(to)));
  }
  void open_to() {
    open<PumpEdges::Out, RecvEnd>(links_.pairwise_to[position_], wiring_.rank, peer_);
  }
  void open_from() {
    open<PumpEdges::In, SendEnd>(links_.pairwise_from[position_], peer_, wiring_.rank);
  }

 private:
  // `PumpEdge` with `PumpEnd`: what the pump has of an edge to another host.
  template <class PumpEdge, class PumpEnd, class End>
  void open(End& end, int from, int to) {
    if (end.geometry().slots != 0) return;
    if (wiring_.shares_memory(peer_)) {
      end = End(shared_fifo(from, to));
      return;
    }
    auto [memory, fifo] = private_fifo();
    links_.pump->carry(PumpEdge{peer_, {Algorithm::pairwise}, kPairwiseChannel, PumpEnd(fifo)},
                       std::move(memory));
    end = End(fifo);
  }

  [[nodiscard]] int among_sharing(int rank) const {
    const std::vector<int>& sharing = links_.ranks_sharing;
    return static_cast<int>(std::find(sharing.begin(), sharing.end(), rank) - sharing.begin());
  }

  [[nodiscard]] FifoMemory shared_fifo(int from, int to) const {
    const HostSegment& segment = *links_.segment;
    return segment.pairwise_fifo(among_sharing(from), among_sharing(to));
  }

  // The pump is at its other end.
  [[nodiscard]] std::pair<Mapping, FifoMemory> private_fifo() const {
    Mapping memory = map_private(contiguous_fifo_bytes(links_.pairwise_geometry));
    const FifoMemory fifo = contiguous_fifo(memory.data(), links_.pairwise_geometry);
    return {std::move(memory), fifo};
  }

  Wiring& wiring_;
  Links& links_;
  std::size_t position_;
  int peer_;
};

}  // namespace

// All that the call needs is reserved at once: looking at the limits takes a while.
void open_pairwise_edges(Wiring& wiring, const Schedule& schedule) {
  std::vector<SegmentPart> parts;
  for (int index = 0; index < schedule.steps(); ++index) {
    const Step step = schedule.step(index);
    if (step.has(kSend)) Opener(wiring, step.to).add_parts(true, parts);
    if (step.has(kRecv)) Opener(wiring, step.from).add_parts(false, parts);
  }
  wiring.links.segment->reserve(parts);
  for (int index = 0; index < schedule.steps(); ++index) {
    const Step step = schedule.step(index);
    if (step.has(kSend)) Opener(wiring, step.to).open_to();
    if (step.has(kRecv)) Opener(wiring, step.from).open_from();
  }
}

}  // namespace rondo::detail
