// Messages, gather, scatter and all_to_all in a kernel: these copy elements, whatever their type
// is.
//
// The two halves of a sendrecv go in blocks of their own, so that neither waits for the other: the
// first `slicing.channels` blocks send, and the others receive. All else is as in the ring's
// kernels.
#pragma once

#include "cuda/protocol/arguments.hpp"
#include "cuda/protocol/device_port.hpp"

namespace rondo::detail::gpu {

// In the place of a Reduction: no step of `pairwise` reduces.
template <class T>
struct NoReduction {
  using Element = T;
  template <class Visit>
  RONDO_HOST_DEVICE static void with_operation(const Step& /*step*/, int /*ranks*/,
                                               Visit&& /*visit*/) {}
};

// What one block does of a call.
struct PairwisePart {
  PairwiseSchedule steps;
  Slicing slicing;
  Signature signature;
  ChannelEnds ends;
};

RONDO_HOST_DEVICE inline PairwisePart part_of(const KernelArguments& call, int block_number) {
  const RankView& rank = call.rank;
  PairwisePart part{{call.schedule}, call.slicing, call.signature, {}};
  int channel = block_number;
  Collective& collective = part.steps.schedule.collective;
  if (collective == Collective::sendrecv) {
    const auto sending = static_cast<int>(call.slicing.channels);
    collective = block_number < sending ? Collective::send : Collective::recv;
    if (collective == Collective::recv) {
      channel -= sending;
      part.slicing.channels = static_cast<std::uint64_t>(call.receiving_channels);
      part.slicing.count = call.received;
      part.signature.count = call.received;
      part.signature.root = rank.ring[call.schedule.from];
    }
  }
  part.slicing.channel = static_cast<std::uint64_t>(channel);
  const int row = channel * rank.size;
  if (collective != Collective::recv) part.ends.to = rank.pairwise_to + row;
  if (collective != Collective::send) part.ends.from = rank.pairwise_from + row;
  return part;
}

// One block's part in one call. By every thread of the block.
template <class T, Block B>
RONDO_HOST_DEVICE void run_pairwise(B& block, const KernelArguments& call, int block_number) {
  const BlockState& state = call.rank.blocks[block_number];
  if (state.failed != 0) return;
  PairwisePart part = part_of(call, block_number);
  if (!is_message(call.schedule.collective)) part.signature.sequence = state.calls;
  walk<NoReduction<T>>(block, call, part.steps, part.slicing, part.signature, part.ends,
                       block_number);
}

}  // namespace rondo::detail::gpu
