#include "engine/pairwise_edges.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "carrier/memory.hpp"

namespace rondo::detail {
namespace {

// The pump gives other messages channel 0.
constexpr int kPairwiseChannel = 1;

class Opener {
 public:
  Opener(Wiring& wiring, int position)
      : wiring_(wiring),
        links_(wiring.links),
        position_(static_cast<std::size_t>(position)),
        peer_(wiring.topology.ring[position_]) {}

  void open_to() {
    SendEnd& end = links_.pairwise_to[position_];
    if (end.geometry().slots != 0) return;
    if (wiring_.shares_memory(peer_)) {
      end = SendEnd(shared_fifo(wiring_.rank, peer_));
      return;
    }
    auto [memory, fifo] = private_fifo();
    links_.pump->carry({peer_, {Algorithm::pairwise}, kPairwiseChannel, RecvEnd(fifo)},
                       std::move(memory));
    end = SendEnd(fifo);
  }

  void open_from() {
    RecvEnd& end = links_.pairwise_from[position_];
    if (end.geometry().slots != 0) return;
    if (wiring_.shares_memory(peer_)) {
      end = RecvEnd(shared_fifo(peer_, wiring_.rank));
      return;
    }
    auto [memory, fifo] = private_fifo();
    links_.pump->carry({peer_, {Algorithm::pairwise}, kPairwiseChannel, SendEnd(fifo)},
                       std::move(memory));
    end = RecvEnd(fifo);
  }

 private:
  [[nodiscard]] int among_sharing(int rank) const {
    const std::vector<int>& sharing = links_.ranks_sharing;
    return static_cast<int>(std::find(sharing.begin(), sharing.end(), rank) - sharing.begin());
  }

  [[nodiscard]] FifoMemory shared_fifo(int from, int to) const {
    const HostSegment& segment = *links_.segment;
    const std::array parts = {segment.pairwise(among_sharing(from), among_sharing(to))};
    segment.reserve(parts);
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

void open_pairwise_edges(Wiring& wiring, const Schedule& schedule) {
  for (int index = 0; index < schedule.steps(); ++index) {
    const Step step = schedule.step(index);
    if (step.has(kSend)) Opener(wiring, step.to).open_to();
    if (step.has(kRecv)) Opener(wiring, step.from).open_from();
  }
}

}  // namespace rondo::detail
