// The host's port of run_schedule: FIFO ends, pointers, one reduction kernel, and how to wait.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/collective_traits.hpp"
#include "base/index.hpp"
#include "engine/context.hpp"
#include "engine/run_schedule.hpp"
#include "plan/call_signature.hpp"
#include "reduce/by_user.hpp"
#include "reduce/kernels.hpp"
#include "reduce/one_nan.hpp"

namespace rondo::detail {

// A call by a schedule, as the host carries it out.
struct HostCall {
  Signature signature;
  Plan plan;
  const std::byte* in = nullptr;  // whose first element is element `plan.in_origin` of the vector
  std::byte* out = nullptr;       // element `plan.out_origin`
  std::size_t element_bytes = 1;
  ReduceKernel kernel;
  const UserReduction* by_user = nullptr;  // reduces, in place of the kernel
  AverageFactors average;     // of averages alone; where inputs are parts already, without a scale
  bool non_temporal = false;  // the output is written with non-temporal stores
  // Set where two partners compute the same sums, products or averages, each for itself: the NaNs
  // among them are made alike.
  std::optional<DataType> alike_nans_of = {};
};

// A piece of a result and its operands fit the L1 cache together.
inline constexpr std::uint64_t kPieceBytes = 8192;

class HostPort {
 public:
  HostPort(Context& context, const HostCall& call)
      : context_(context),
        wiring_(context.wiring),
        to_(is_pairwise(call) ? pairwise_of(call).to : wiring_.links.to),
        from_(is_pairwise(call) ? pairwise_of(call).from : wiring_.links.from),
        waiter_(context.waiter),
        progress_(context.progress),
        call_(call),
        copy_(vector_copy()) {}

  [[nodiscard]] std::uint64_t chunk_at(int position) const {
    return static_cast<std::uint64_t>(call_.plan.chunks_are_ranks ? rank_at(position) : position);
  }

  // Throws Failure in place of giving up.
  bool acquire(const Step& step, const Range& slice) {
    if (step.has(kRecv)) wait_received(step.from, slice);
    if (step.has(kSend)) wait_free(step.to);
    return true;
  }

  // For a rank that works long without a wait.
  void poll() { waiter_.poll(); }
  [[nodiscard]] bool has_free_slot(int to) { return send_end(to).can_acquire(); }

  void move(const Step& step, const Range& slice) {
    if (slice.count == 0) return;
    const std::byte* received = step.has(kRecv) ? payload(recv_end(step.from).slot()) : nullptr;
    std::byte* copied = step.has(kCopy) ? copied_to(step, slice) : nullptr;
    std::byte* sent = step.has(kSend) ? payload(send_end(step.to).slot()) : nullptr;
    if (step.has(kReduce)) {
      reduce(step, slice, received, copied, sent);
      return;
    }
    const std::byte* source = received != nullptr ? received : mine(step, slice);
    if (copied == source) copied = nullptr;
    if (sent != nullptr) copy_to_slot(step.to, sent, source, bytes(slice));
    if (copied != nullptr)
      (call_.non_temporal ? copy_.non_temporal : copy_.cached)(copied, source, bytes(slice));
  }

  void hand_on(const Step& step, const Range& slice) {
    if (step.has(kRecv)) release(step.from);
    if (step.has(kSend)) publish(step.to, slice);
  }

 private:
  static bool is_pairwise(const HostCall& call) {
    return uses_pairwise_edges(call.plan.schedule.algorithm);
  }
  [[nodiscard]] Links::PairwiseEnds& pairwise_of(const HostCall& call) const {
    return wiring_.links.pairwise_of(call.plan.schedule.algorithm);
  }

  void wait_received(int from, const Range& slice) {
    RecvEnd& end = recv_end(from);
    for (;;) {
      waiter_.wait(rank_at(from), [&] { return end.can_peek(); });
      const SlotHeader& header = *end.slot();
      if (header.signature == call_.signature && header.bytes == bytes(slice)) return;
      if (!is_left_over(header.signature)) {
        throw Failure{Cause::other_call, rank_at(from), header.signature};
      }
      end.release();
    }
  }

  // Whether a slot has a message of an earlier communicator, which nobody received there.
  [[nodiscard]] bool is_left_over(const Signature& received) const {
    return is_message(static_cast<Collective>(received.collective)) &&
           !is_message_of(received, wiring_.links.session);
  }

  void wait_free(int to) {
    SendEnd& end = send_end(to);
    waiter_.wait(rank_at(to), [&] { return end.can_acquire(); });
  }

  void release(int from) {
    recv_end(from).release();
    ring_bell(from);
    ++progress_.slices_received;
  }

  void publish(int to, const Range& slice) {
    SendEnd& end = send_end(to);
    end.slot()->signature = call_.signature;
    end.slot()->bytes = bytes(slice);
    end.publish();
    ring_bell(to);
    progress_.bytes_sent += bytes(slice);
  }

  [[nodiscard]] int rank_at(int position) const { return (*call_.plan.ring)[Index(position)]; }
  // Where the links to a position of the schedule are.
  [[nodiscard]] std::size_t link_to(int position) const {
    return wiring_.links.positions[Index(rank_at(position))];
  }
  void copy_to_slot(int to, std::byte* sent, const std::byte* source, std::size_t bytes) {
    if (is_in_segment(to)) {
      context_.copy_to_slot(sent, source, bytes);
    } else {
      copy_.cached(sent, source, bytes);
    }
  }
  void reduce(const Step& step, const Range& slice, const std::byte* received, std::byte* copied,
              std::byte* sent) {
    const bool own_first = step.has(kMineFirst);
    const std::byte* own = mine(step, slice);
    if (call_.by_user != nullptr) {
      std::byte* first = copied != nullptr ? copied : sent;
      combine_by(*call_.by_user, first, first == sent ? nullptr : sent, own_first ? own : received,
                 own_first ? received : own, slice.count);
      return;
    }
    const Reduction reduction{step.has(kFinish) ? call_.kernel.finish : call_.kernel.combine,
                              average_step(step, own_first), own_first ? own : received,
                              own_first ? received : own, slice.count};
    // Partners that sum alike read their outputs again, in the next round.
    const bool past_caches = call_.non_temporal && sent != nullptr && !call_.alike_nans_of;
    const Stores to_output = past_caches ? Stores::non_temporal : Stores::cached;
    if (sent == nullptr || !is_in_segment(step.to)) {
      reduce_to(reduction, {copied, to_output}, {sent, Stores::cached});
      return;
    }
    LearnedStores& learned =
        copied == nullptr ? context_.sums_to_slot : context_.sums_to_slot_and_output;
    learned.write(bytes(slice), [&](Stores stores) {
      reduce_to(reduction, {copied, to_output}, {sent, stores});
    });
  }
  struct Reduction {
    ReduceFunction function = nullptr;
    AverageStep average;
    const std::byte* a = nullptr;
    const std::byte* b = nullptr;
    std::uint64_t count = 0;
  };
  struct Target {
    std::byte* data = nullptr;  // null: there is none
    Stores stores = Stores::cached;

    [[nodiscard]] bool is(Stores wanted) const { return data != nullptr && stores == wanted; }
  };
  // Non-temporal stores are copies, piece by piece, so that they read from the L1 cache.
  void reduce_to(const Reduction& r, const Target& output, const Target& slot) {
    const bool copies = output.is(Stores::non_temporal) || slot.is(Stores::non_temporal);
    const std::uint64_t piece_elems = copies ? kPieceBytes / call_.element_bytes : r.count;
    alignas(64) std::array<std::byte, kPieceBytes> piece;  // NOLINT: written before it is read
    for (std::uint64_t done = 0; done < r.count; done += piece_elems) {
      const std::uint64_t count = std::min(piece_elems, r.count - done);
      const std::uint64_t at = done * call_.element_bytes;
      std::byte* cached_output = output.is(Stores::cached) ? output.data + at : nullptr;
      std::byte* cached_slot = slot.is(Stores::cached) ? slot.data + at : nullptr;
      std::byte* first = cached_output != nullptr ? cached_output : cached_slot;
      std::byte* second = cached_output != nullptr ? cached_slot : nullptr;
      if (first == nullptr) first = piece.data();
      r.function(first, second, r.a + at, r.b + at, count, r.average);
      if (call_.alike_nans_of) {
        make_nans_alike(first, *call_.alike_nans_of, count);
        if (second != nullptr) make_nans_alike(second, *call_.alike_nans_of, count);
      }
      const std::uint64_t bytes = count * call_.element_bytes;
      if (output.is(Stores::non_temporal)) copy_.non_temporal(output.data + at, first, bytes);
      if (slot.is(Stores::non_temporal)) copy_.non_temporal(slot.data + at, first, bytes);
    }
  }
  [[nodiscard]] AverageStep average_step(const Step& step, bool own_first) const {
    const float own = step.has(kMineIsOutput) ? 1 : call_.average.scale;
    const float received = step.has(kReceivedIsInput) ? call_.average.scale : 1;
    return {own_first ? own : received, own_first ? received : own, call_.average.divisor};
  }
  // Whether the other end of the edge is in the host's segment; else the pump of this process is.
  [[nodiscard]] bool is_in_segment(int position) const {
    return wiring_.links.bells[link_to(position)] != nullptr;
  }
  void ring_bell(int position) {
    if (Bell* bell = wiring_.links.bells[link_to(position)]) bell->ring();
  }
  [[nodiscard]] RecvEnd& recv_end(int position) { return from_[link_to(position)]; }
  [[nodiscard]] SendEnd& send_end(int position) { return to_[link_to(position)]; }
  [[nodiscard]] std::size_t bytes(const Range& slice) const {
    return slice.count * call_.element_bytes;
  }
  [[nodiscard]] const std::byte* mine(const Step& step, const Range& slice) const {
    if (step.has(kMineIsOutput)) return out_at(slice);
    return call_.in + (slice.offset - call_.plan.in_origin) * call_.element_bytes;
  }
  [[nodiscard]] std::byte* copied_to(const Step& step, const Range& slice) const {
    const std::uint64_t moved = step.has(kRecv) ? 0 : call_.plan.own_moves_by;
    return out_at({slice.offset + moved, slice.count});
  }
  [[nodiscard]] std::byte* out_at(const Range& slice) const {
    return call_.out + (slice.offset - call_.plan.out_origin) * call_.element_bytes;
  }

  Context& context_;
  Wiring& wiring_;
  std::vector<SendEnd>& to_;
  std::vector<RecvEnd>& from_;
  Waiter& waiter_;
  Progress& progress_;
  const HostCall& call_;
  CopyKernel copy_;
};
static_assert(Port<HostPort>);

}  // namespace rondo::detail
