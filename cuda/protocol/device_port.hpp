// The port of run_schedule in a kernel: all threads of a block go through the same schedule. The
// leader waits, compares signatures and publishes; all threads move data.
//
// Each slice costs two barriers: one at the end of acquire, by which all threads also learn whether
// the leader's waits succeeded, and one at the start of hand_on, so that the leader hands on only
// what all threads have finished moving.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/collective_traits.hpp"
#include "cuda/protocol/arguments.hpp"
#include "cuda/protocol/block.hpp"
#include "cuda/protocol/moves.hpp"
#include "cuda/protocol/patience.hpp"
#include "engine/run_schedule.hpp"

namespace rondo::detail::gpu {

template <class Reduction, Block B>
class DevicePort {
  using T = typename Reduction::Element;

 public:
  RONDO_HOST_DEVICE DevicePort(B& block, const KernelArguments& arguments,
                               const Signature& signature, int block_number)
      : block_(block),
        call_(arguments),
        signature_(signature),
        block_number_(block_number),
        patience_{arguments.timeout_ns, 0,
                  block.leader() && block_number == 0 && !is_message(arguments.schedule.collective),
                  signature.sequence} {}

  [[nodiscard]] RONDO_HOST_DEVICE std::uint64_t chunk_at(int position) const {
    return static_cast<std::uint64_t>(call_.chunks_are_ranks ? call_.rank.ring[position]
                                                             : position);
  }

  // Called by every thread; returns the same on all.
  RONDO_HOST_DEVICE bool acquire(const Step& step, const Range& slice) {
    bool leader_ok = true;
    if (block_.leader()) {
      leader_ok = (!step.has(kRecv) || wait_received(step.from, slice)) &&
                  (!step.has(kSend) || wait_free(step.to));
    }
    return block_.all(leader_ok);
  }

  RONDO_HOST_DEVICE void move(const Step& step, const Range& slice) {
    if (step.has(kSend) && block_.leader()) {
      SlotHeader& header = *block_.to()[step.to].slot();
      header.signature = signature_;
      header.bytes = slice.count * sizeof(T);
    }
    if (slice.count == 0) return;  // a greeting's place may lie outside the buffers
    const std::byte* received = step.has(kRecv) ? block_.shared().received : nullptr;
    std::byte* sent = step.has(kSend) ? block_.shared().sent : nullptr;
    std::byte* copied = step.has(kCopy) ? at(call_.out, call_.out_origin, slice) : nullptr;
    if (step.has(kReduce)) {
      const Targets to = copied != nullptr ? Targets{copied, sent} : Targets{sent, nullptr};
      const std::byte* mine = my_elements(step, slice);
      Reduction::with_operation(step, call_.rank.size, [&](const auto& operation) {
        combine_elements<T>(block_, to, received, mine, slice.count, operation);
      });
      return;
    }
    const std::byte* source = received != nullptr ? received : my_elements(step, slice);
    if (copied == source) copied = nullptr;
    const Targets to = copied != nullptr ? Targets{copied, sent} : Targets{sent, nullptr};
    if (to.first != nullptr) copy_elements<T>(block_, to, source, slice.count);
  }

  // At the barrier all threads have finished reading and writing this slice's slots. Then one fence
  // of the leader comes before both counters that it stores.
  RONDO_HOST_DEVICE void hand_on(const Step& step, const Range& slice) {
    if (!step.has(kRecv) && !step.has(kSend)) return;
    block_.sync();
    if (!block_.leader()) return;
    fence_before_stores();
    if (step.has(kRecv)) {
      block_.from()[step.from].release_after_fence();
      ++slices_received_;
    }
    if (step.has(kSend)) {
      block_.to()[step.to].publish_after_fence();
      bytes_sent_ += slice.count * sizeof(T);
    }
  }

  // The leader calls this when the call is over, or fails.
  RONDO_HOST_DEVICE void tell_hosts() { patience_.tell_hosts(call_); }

 private:
  // Only the leader calls these three. If a wait fails, the failure is recorded for the hosts.
  RONDO_HOST_DEVICE bool wait_received(int from, const Range& slice) {
    RecvEnd& end = block_.from()[from];
    for (;;) {
      if (!waited(from, wait_until(block_, call_, patience_, [&] { return end.can_peek(); }))) {
        return false;
      }
      const SlotHeader& header = *end.slot();
      block_.shared().received = payload(end.slot());
      if (header.signature == signature_ && header.bytes == slice.count * sizeof(T)) return true;
      if (!is_left_over(header.signature)) {
        KernelFailure reason;
        reason.kind = static_cast<std::uint64_t>(FailureKind::mismatched);
        reason.theirs = header.signature;
        fail(from, reason);
        return false;
      }
      end.release();
    }
  }

  // Whether a slot has a message of an earlier communicator, which nobody received there: from
  // another host only.
  [[nodiscard]] RONDO_HOST_DEVICE bool is_left_over(const Signature& received) const {
    return is_message(static_cast<Collective>(received.collective)) &&
           received.sequence != call_.rank.message_number;
  }

  RONDO_HOST_DEVICE bool wait_free(int to) {
    SendEnd& end = block_.to()[to];
    if (!waited(to, wait_until(block_, call_, patience_, [&] { return end.can_acquire(); }))) {
      return false;
    }
    block_.shared().sent = payload(end.slot());
    return true;
  }

  RONDO_HOST_DEVICE bool waited(int position, FailureKind kind) {
    if (kind == FailureKind::none) return true;
    KernelFailure reason;
    reason.kind = static_cast<std::uint64_t>(kind);
    fail(position, reason);
    return false;
  }

  RONDO_HOST_DEVICE void fail(int position, KernelFailure& reason) {
    tell_hosts();
    reason.peer = call_.rank.ring[position];
    reason.mine = signature_;
    reason.slices_received = slices_received_;
    reason.bytes_sent = bytes_sent_;
    give_up(call_.rank.control, call_.rank.rank, block_number_, reason);
  }

  [[nodiscard]] RONDO_HOST_DEVICE const std::byte* my_elements(const Step& step,
                                                               const Range& slice) const {
    if (step.has(kMineIsOutput)) return at(call_.out, call_.out_origin, slice);
    return at(call_.in, call_.in_origin, slice);
  }
  // `data` holds the vector from element `origin` on.
  template <class Byte>
  [[nodiscard]] RONDO_HOST_DEVICE static Byte* at(Byte* data, std::uint64_t origin,
                                                  const Range& slice) {
    return data + (slice.offset - origin) * sizeof(T);
  }

  B& block_;
  const KernelArguments& call_;
  const Signature& signature_;
  int block_number_;
  Patience patience_;  // the leader's
  std::uint64_t slices_received_ = 0;
  std::uint64_t bytes_sent_ = 0;
};

// The FIFO ends of one channel in the rank's tables, by position. Null where the block does not use
// them: in a sendrecv, another block does at the same time.
struct ChannelEnds {
  SendEnd* to = nullptr;
  RecvEnd* from = nullptr;
};

// Takes a block through `steps`, with the FIFO ends in its shared memory meanwhile.
template <class Reduction, class Steps, Block B>
RONDO_HOST_DEVICE void walk(B& block, const KernelArguments& call, const Steps& steps,
                            const Slicing& slicing, const Signature& signature,
                            const ChannelEnds& ends, int block_number) {
  const int size = call.rank.size;
  const auto first = static_cast<int>(block.thread());
  const auto stride = static_cast<int>(block.threads());
  for (int i = first; i < size; i += stride) {
    if (ends.to != nullptr) block.to()[i] = ends.to[i];
    if (ends.from != nullptr) block.from()[i] = ends.from[i];
  }
  block.sync();
  DevicePort<Reduction, B> port(block, call, signature, block_number);
  const bool ok = run_schedule(steps, slicing, port);
  block.sync();
  for (int i = first; i < size; i += stride) {
    if (ends.to != nullptr) ends.to[i] = block.to()[i];
    if (ends.from != nullptr) ends.from[i] = block.from()[i];
  }
  if (block.leader()) {
    port.tell_hosts();
    BlockState& state = call.rank.blocks[block_number];
    if (!is_message(call.schedule.collective)) ++state.calls;
    state.failed = ok ? 0 : 1;
  }
}

// One block's part in one call by `ring` or `naive`. By every thread of the block.
template <class Reduction, Block B>
RONDO_HOST_DEVICE void run_ring(B& block, const KernelArguments& call, int channel) {
  const RankView& rank = call.rank;
  const BlockState& state = rank.blocks[channel];
  if (state.failed != 0) return;
  Signature signature = call.signature;
  signature.sequence = state.calls;
  Slicing slicing = call.slicing;
  slicing.channel = static_cast<std::uint64_t>(channel);
  const ChannelEnds ends{rank.to + channel * rank.size, rank.from + channel * rank.size};
  walk<Reduction>(block, call, call.schedule, slicing, signature, ends, channel);
}

}  // namespace rondo::detail::gpu
