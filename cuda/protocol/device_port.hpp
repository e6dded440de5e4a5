// What run_schedule stands on in a kernel: all threads of a block walk the schedule alike; the leader
// waits, compares signatures and publishes, everyone moves.
//
// Each slice costs two barriers: one before the move, which also tells everyone whether the leader's
// waits succeeded, and one after it, before the leader hands the slots on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/run_schedule.hpp"
#include "protocol/arguments.hpp"
#include "protocol/block.hpp"
#include "protocol/moves.hpp"
#include "protocol/patience.hpp"

namespace rondo::detail::gpu {

template <class Reduction, Block B>
class DevicePort {
  using T = typename Reduction::Element;

 public:
  RONDO_HOST_DEVICE DevicePort(B& block, const KernelArguments& arguments,
                               const Signature& signature, int channel)
      : block_(block),
        call_(arguments),
        signature_(signature),
        channel_(channel),
        patience_{arguments.timeout_ns, 0, block.leader() && channel == 0, signature.sequence} {}

  [[nodiscard]] RONDO_HOST_DEVICE std::uint64_t chunk_at(int position) const {
    return static_cast<std::uint64_t>(call_.chunks_are_ranks ? call_.rank.ring[position]
                                                             : position);
  }

  // The waits of one slice may fail on the leader alone; move() tells everyone, and the next wait
  // ends the loop.
  RONDO_HOST_DEVICE bool wait_received(int from, const Range& slice) {
    if (failed_) return false;
    if (block_.leader()) {
      RecvEnd& end = block_.from()[from];
      waited(from, wait_until(block_, call_, patience_, [&] { return end.can_peek(); }));
      if (leader_ok_) check_header(from, *end.slot(), slice);
      if (leader_ok_) block_.shared().received = payload(end.slot());
    }
    return true;
  }

  RONDO_HOST_DEVICE bool wait_free(int to) {
    if (failed_) return false;
    if (block_.leader() && leader_ok_) {
      SendEnd& end = block_.to()[to];
      waited(to, wait_until(block_, call_, patience_, [&] { return end.can_acquire(); }));
      if (leader_ok_) block_.shared().sent = payload(end.slot());
    }
    return true;
  }

  RONDO_HOST_DEVICE void move(const Step& step, const Range& slice) {
    settled_ = false;
    if (!block_.all(leader_ok_)) {
      failed_ = true;
      return;
    }
    if (step.has(kSend) && block_.leader()) {
      SlotHeader& header = *block_.to()[step.to].slot();
      header.signature = signature_;
      header.bytes = slice.count * sizeof(T);
    }
    const std::byte* received = step.has(kRecv) ? block_.shared().received : nullptr;
    std::byte* sent = step.has(kSend) ? block_.shared().sent : nullptr;
    std::byte* copied = step.has(kCopy) ? at(call_.out, call_.out_origin, slice) : nullptr;
    if (step.has(kReduce)) {
      const Targets to = copied != nullptr ? Targets{copied, sent} : Targets{sent, nullptr};
      const std::byte* mine = my_elements(step, slice);
      Reduction::with_operation(step.has(kFinish), call_.rank.size, [&](const auto& operation) {
        combine_elements<T>(block_, to, received, mine, slice.count, operation);
      });
      return;
    }
    const std::byte* source = received != nullptr ? received : my_elements(step, slice);
    if (copied == source) copied = nullptr;
    const Targets to = copied != nullptr ? Targets{copied, sent} : Targets{sent, nullptr};
    if (to.first != nullptr) copy_elements<T>(block_, to, source, slice.count);
  }

  RONDO_HOST_DEVICE void release(int from) {
    if (failed_) return;
    settle();
    if (!block_.leader()) return;
    block_.from()[from].release_after_fence();
    ++slices_received_;
  }

  RONDO_HOST_DEVICE void publish(int to, const Range& slice) {
    if (failed_) return;
    settle();
    if (!block_.leader()) return;
    block_.to()[to].publish_after_fence();
    bytes_sent_ += slice.count * sizeof(T);
  }

  [[nodiscard]] RONDO_HOST_DEVICE bool failed() const { return failed_; }
  // By the leader, when the call is over, or fails.
  RONDO_HOST_DEVICE void tell_hosts() { patience_.tell_hosts(call_); }

 private:
  // Everyone's reads and writes of this slice's slots are over: the barrier gathers them, and one fence of
  // the leader's comes before both counters that it stores.
  RONDO_HOST_DEVICE void settle() {
    if (settled_) return;
    block_.sync();
    if (block_.leader()) fence_before_stores();
    settled_ = true;
  }

  RONDO_HOST_DEVICE void waited(int position, FailureKind kind) {
    if (kind == FailureKind::none) return;
    Failure reason;
    reason.kind = static_cast<std::uint64_t>(kind);
    fail(position, reason);
  }

  RONDO_HOST_DEVICE void check_header(int from, const SlotHeader& header, const Range& slice) {
    if (header.signature == signature_ && header.bytes == slice.count * sizeof(T)) return;
    Failure reason;
    reason.kind = static_cast<std::uint64_t>(FailureKind::mismatched);
    reason.theirs = header.signature;
    fail(from, reason);
  }

  RONDO_HOST_DEVICE void fail(int position, Failure& reason) {
    leader_ok_ = false;
    tell_hosts();
    reason.peer = call_.rank.ring[position];
    reason.mine = signature_;
    reason.slices_received = slices_received_;
    reason.bytes_sent = bytes_sent_;
    give_up(call_.rank.control, call_.rank.rank, channel_, reason);
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
  int channel_;
  Patience patience_;      // the leader's
  bool leader_ok_ = true;  // on the leader: no wait has failed
  bool failed_ = false;    // on every thread, after move()
  bool settled_ = true;    // on every thread: a barrier has passed since the last move
  std::uint64_t slices_received_ = 0;
  std::uint64_t bytes_sent_ = 0;
};

// One block's part in one call by `ring` or `naive`. By every thread of the block.
template <class Reduction, Block B>
RONDO_HOST_DEVICE void run_ring(B& block, const KernelArguments& call, int channel) {
  const RankView& rank = call.rank;
  ChannelState& state = rank.channels[channel];
  if (state.failed != 0) return;
  Signature signature = call.signature;
  signature.sequence = state.calls;
  SendEnd* to = rank.to + channel * rank.size;
  RecvEnd* from = rank.from + channel * rank.size;
  for (auto i = static_cast<int>(block.thread()); i < rank.size;
       i += static_cast<int>(block.threads())) {
    block.to()[i] = to[i];
    block.from()[i] = from[i];
  }
  block.sync();

  Slicing slicing = call.slicing;
  slicing.channel = static_cast<std::uint64_t>(channel);
  DevicePort<Reduction, B> port(block, call, signature, channel);
  run_schedule(call.schedule, slicing, port);

  block.sync();
  for (auto i = static_cast<int>(block.thread()); i < rank.size;
       i += static_cast<int>(block.threads())) {
    to[i] = block.to()[i];
    from[i] = block.from()[i];
  }
  if (block.leader()) {
    port.tell_hosts();
    ++state.calls;
    state.failed = port.failed() ? 1 : 0;
  }
}

}  // namespace rondo::detail::gpu
