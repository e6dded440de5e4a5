#include "engine/pairwise_edges.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "memory/shared_memory.hpp"

namespace rondo::detail {
namespace {

// The edges that are made when ranks join have channel 0.
constexpr int channel_of(PairwiseUse use) { return 1 + static_cast<int>(use); }

class Opener {
 public:
  Opener(Wiring& wiring, Algorithm algorithm, int peer)
      : wiring_(wiring),
        links_(wiring.links),
        algorithm_(algorithm),
        ends_(links_.pairwise_of(algorithm)),
        peer_(peer),
        position_(links_.positions[Index(peer)]) {}

  // What has to be reserved before this edge is opened, if anything.
  void add_parts(bool sends, std::vector<SegmentPart>& parts) const {
    const bool is_open = sends ? ends_.to[position_].geometry().slots != 0
                               : ends_.from[position_].geometry().slots != 0;
    if (is_open || !wiring_.shares_memory(peer_)) return;
    const int from = sends ? wiring_.rank : peer_;
    const int to = sends ? peer_ : wiring_.rank;
    parts.push_back(
        links_.segment->pairwise(pairwise_use(algorithm_), among_sharing(from), among_sharing(to)));
  }
  void open_to() { open<PumpEdges::Out, RecvEnd>(ends_.to[position_], wiring_.rank, peer_); }
  void open_from() { open<PumpEdges::In, SendEnd>(ends_.from[position_], peer_, wiring_.rank); }

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
    links_.pump->carry(
        PumpEdge{peer_, {algorithm_}, channel_of(pairwise_use(algorithm_)), PumpEnd(fifo)},
        std::move(memory));
    end = End(fifo);
  }

  [[nodiscard]] int among_sharing(int rank) const {
    const std::vector<int>& sharing = links_.ranks_sharing;
    return static_cast<int>(std::find(sharing.begin(), sharing.end(), rank) - sharing.begin());
  }

  [[nodiscard]] FifoMemory shared_fifo(int from, int to) const {
    const HostSegment& segment = *links_.segment;
    return segment.pairwise_fifo(pairwise_use(algorithm_), among_sharing(from), among_sharing(to));
  }

  // The pump is at its other end.
  [[nodiscard]] std::pair<Mapping, FifoMemory> private_fifo() const {
    Mapping memory = map_private(contiguous_fifo_bytes(ends_.geometry));
    const FifoMemory fifo = contiguous_fifo(memory.data(), ends_.geometry);
    return {std::move(memory), fifo};
  }

  Wiring& wiring_;
  Links& links_;
  Algorithm algorithm_;
  Links::PairwiseEnds& ends_;
  int peer_;
  std::size_t position_;  // of the peer, in the ring
};

}  // namespace

// All that the call needs is reserved at once: looking at the limits takes a while.
void open_pairwise_edges(Wiring& wiring, const Plan& plan) {
  const Schedule& schedule = plan.schedule;
  const auto opener = [&](int position) {
    return Opener(wiring, schedule.algorithm, (*plan.ring)[Index(position)]);
  };
  const int steps = schedule.steps();
  std::vector<SegmentPart> parts;
  for (int index = 0; index < steps; ++index) {
    const Step step = schedule.step(index);
    if (step.has(kSend)) opener(step.to).add_parts(true, parts);
    if (step.has(kRecv)) opener(step.from).add_parts(false, parts);
  }
  wiring.links.segment->reserve(parts);
  for (int index = 0; index < steps; ++index) {
    const Step step = schedule.step(index);
    if (step.has(kSend)) opener(step.to).open_to();
    if (step.has(kRecv)) opener(step.from).open_from();
  }
}

}  // namespace rondo::detail
