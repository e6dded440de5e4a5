// The port of run_direct in a kernel: each block of a rank meets the same block of all other ranks,
// and handles its part of the rank's chunk in the buffers of all ranks. A rank shows its call to
// each other rank in a Post that lies in that rank's memory. There are two waits: for the posts of
// all ranks, and for all to have touched.
//
// Thread p of a block shows this rank's call to rank p, and waits for rank p. The store that
// completes a post comes after all that the rank's stream did before, so whoever finds the post
// finds the inputs. In finish(), a barrier puts the writes of all threads before each thread's
// release store of "has touched", whose acquire comes before the barrier behind which a rank's
// kernel ends.
//
// Some buffers may be unreachable. A rank learns that only from what all ranks have shown, and then
// all run the ring in the same kernel. A rank whose own buffers are unreachable knows at once, and
// does not wait; it may end the call and show later ones while others still look for this one. They
// then find a later number, and conclude the same, since no rank leaves a call in which all buffers
// are reachable before all have touched.
//
// When a call fails, its kernel does not end while another rank may touch this rank's buffers. A
// rank takes the buffers that another has shown in one atomic step, before it touches them, and a
// rank whose call has failed withdraws its own in such a step on the same word. So either the first
// finds them withdrawn and fails too, or the second finds them taken, and waits until that rank has
// touched or renounced. A rank that has taken waits for nobody before it says so. One that was
// stopped or killed in the middle is not waited for forever: see kPatienceNs.
//
//   rank A                                    rank B, whose call has failed
//   finds B's post                            sets the abort word
//   takes B's buffers: not yet withdrawn      withdraws them from A: taken
//   reads and writes them                     waits
//   has touched                               ends its kernel
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/collective_traits.hpp"
#include "cuda/protocol/arguments.hpp"
#include "cuda/protocol/block.hpp"
#include "cuda/protocol/device_port.hpp"
#include "cuda/protocol/fold.hpp"
#include "cuda/protocol/patience.hpp"
#include "cuda/protocol/post.hpp"
#include "engine/run_direct.hpp"

namespace rondo::detail::gpu {

template <class Reduction, Block B>
class DeviceDirect {
  using T = typename Reduction::Element;

 public:
  enum class Outcome : std::uint8_t { done, unreachable, failed };

  RONDO_HOST_DEVICE DeviceDirect(B& block, const KernelArguments& call, const Signature& signature,
                                 int channel)
      : block_(block),
        call_(call),
        signature_(signature),
        channel_(channel),
        number_(signature.sequence + 1),
        // Every thread waits for another rank, so each may be the one that has to show the hosts
        // this call.
        patience_{call.timeout_ns, 0, channel == 0, signature.sequence} {}

  // Every thread of the block calls this and all functions below, with the same result.
  RONDO_HOST_DEVICE Outcome run() {
    if (run_direct(call_.direct, call_.rank.rank, *this)) return Outcome::done;
    return reachable_ ? Outcome::failed : Outcome::unreachable;
  }

  // The leader calls this when the call is over, the thread that records a failure calls it, and
  // every thread of channel 0 calls it at its first long wait: all show the same.
  RONDO_HOST_DEVICE void tell_hosts() { patience_.tell_hosts(call_); }

  RONDO_HOST_DEVICE bool meet() {
    show_to_all();
    if (!call_.reachable) {
      reachable_ = false;
      return false;
    }
    block_.sync();
    bool ok = true;
    bool all_reachable = true;
    for_each_peer([&](int peer) { ok = ok && look_at(peer, all_reachable); });
    if (!block_.all(ok)) {
      withdraw(false);
      return false;
    }
    reachable_ = block_.all(all_reachable);
    if (!reachable_) renounce();
    return reachable_;
  }

  RONDO_HOST_DEVICE void handle(const Range& elements, const RankRange& sources,
                                const RankRange& targets) {
    const Range mine =
        chunk_range(elements.count, call_.slicing.channels, static_cast<std::uint64_t>(channel_),
                    call_.slicing.channel_granule);
    const Range part{elements.offset + mine.offset, mine.count};
    // Each rank begins with its own output, so that not all write to one device at a time.
    const int rank = call_.rank.rank;
    const bool is_target = rank >= targets.first && rank < targets.first + targets.count;
    const int first_target = is_target ? rank : targets.first;
    if (reduces(call_.direct.collective)) {
      fold_elements<Reduction>(block_, sources, targets, first_target, part);
    } else {
      spread_elements<T>(block_, sources.first, targets, first_target, part);
    }
  }

  RONDO_HOST_DEVICE bool finish() {
    block_.sync();
    for_each_peer([&](int peer) { post(peer, call_.rank.rank).end_touching(number_); });
    bool ok = true;
    for_each_peer([&](int peer) {
      Post& theirs = post(call_.rank.rank, peer);
      ok = ok && waited(peer, wait_until(block_, call_, patience_,
                                         [&] { return theirs.has_touched(number_); }));
    });
    if (block_.all(ok)) return true;
    withdraw(true);
    return false;
  }

 private:
  // How long a failed call waits for another rank that may touch its buffers: this long, and a
  // nanosecond for each byte of the vector, which every link moves faster.
  static constexpr std::uint64_t kPatienceNs = 2'000'000'000;

  template <class Visit>
  RONDO_HOST_DEVICE void for_each_peer(Visit visit) const {
    for (auto peer = static_cast<int>(block_.thread()); peer < call_.rank.size;
         peer += static_cast<int>(block_.threads())) {
      if (peer != call_.rank.rank) visit(peer);
    }
  }

  // In the memory of `reader`: what `writer` shows it on this channel.
  [[nodiscard]] RONDO_HOST_DEVICE Post& post(int reader, int writer) const {
    return call_.rank.posts[reader][channel_ * call_.rank.size + writer];
  }

  RONDO_HOST_DEVICE void show_to_all() {
    for_each_peer([&](int peer) {
      PostedCall mine{signature_};
      if (call_.reachable) {
        mine = {signature_, call_.shown_in.as_seen_by(peer), call_.shown_out.as_seen_by(peer), 1};
      }
      post(peer, call_.rank.rank).show(number_, mine);
    });
    if (!block_.leader()) return;
    const std::uint64_t in_before = call_.in_origin * sizeof(T);
    const std::uint64_t out_before = call_.out_origin * sizeof(T);
    block_.buffers()[call_.rank.rank] = {reinterpret_cast<std::uintptr_t>(call_.in) - in_before,
                                         reinterpret_cast<std::uintptr_t>(call_.out) - out_before};
  }

  RONDO_HOST_DEVICE bool look_at(int peer, bool& all_reachable) {
    Post& theirs = post(call_.rank.rank, peer);
    if (!waited(peer,
                wait_until(block_, call_, patience_, [&] { return theirs.has_come(number_); }))) {
      return false;
    }
    PostedCall shown;
    if (!theirs.read(number_, shown)) {  // it has gone on: see above
      all_reachable = false;
      return true;
    }
    if (!(shown.signature == signature_)) {
      return fail(FailureKind::mismatched, peer, shown.signature);
    }
    if (shown.reachable == 0) {
      all_reachable = false;
      return true;
    }
    block_.buffers()[peer] = {shown.in, shown.out};
    return theirs.take(number_) || fail(FailureKind::aborted, peer, {});
  }

  RONDO_HOST_DEVICE bool waited(int peer, FailureKind kind) {
    return kind == FailureKind::none || fail(kind, peer, {});
  }

  // False, so that callers can return it.
  RONDO_HOST_DEVICE bool fail(FailureKind kind, int peer, const Signature& theirs) {
    if (!block_.claim()) return false;
    tell_hosts();
    KernelFailure reason;
    reason.kind = static_cast<std::uint64_t>(kind);
    reason.peer = peer;
    reason.mine = signature_;
    reason.theirs = theirs;
    give_up(call_.rank.control, call_.rank.rank, channel_, reason);
    return false;
  }

  RONDO_HOST_DEVICE void renounce() {
    for_each_peer([&](int peer) { post(peer, call_.rank.rank).renounce_touching(number_); });
  }

  // After a failure. Returns when no rank touches this rank's buffers, nor will. `touched`: whether
  // this rank has said that it is through with the others'.
  RONDO_HOST_DEVICE void withdraw(bool touched) {
    if (!touched) renounce();
    const std::uint64_t patience_ns = kPatienceNs + call_.direct.count * sizeof(T);
    const std::uint64_t give_up_at_ns = block_.now_ns() + patience_ns;
    for_each_peer([&](int peer) {
      if (post(peer, call_.rank.rank).withdraw(number_)) return;
      Post& theirs = post(call_.rank.rank, peer);
      while (!theirs.is_through(number_) && block_.now_ns() < give_up_at_ns) block_.pause();
    });
    block_.sync();
  }

  B& block_;
  const KernelArguments& call_;
  const Signature& signature_;
  int channel_;
  std::uint64_t number_;  // of this call in posts
  Patience patience_;
  bool reachable_ = true;
};

// Changes nothing of the channel's state if some rank's buffers cannot be reached. Not inlined, so
// that it takes no registers of the ring's; so the block is passed by value, in registers.
template <class Reduction, Block B>
RONDO_HOST_DEVICE RONDO_NOINLINE typename DeviceDirect<Reduction, B>::Outcome run_direct_alone(
    B block, const KernelArguments& call, int channel) {
  using Direct = DeviceDirect<Reduction, B>;
  BlockState& state = call.rank.blocks[channel];
  Signature signature = call.signature;
  signature.sequence = state.calls;
  Direct direct(block, call, signature, channel);
  const typename Direct::Outcome outcome = direct.run();
  if (outcome != Direct::Outcome::unreachable && block.leader()) {
    direct.tell_hosts();
    ++state.calls;
    state.failed = outcome == Direct::Outcome::done ? 0 : 1;
  }
  return outcome;
}

// Runs one block's part in one call by direct, or by the ring if some rank's buffers cannot be
// reached. Every thread of the block calls this.
template <class Reduction, Block B>
RONDO_HOST_DEVICE void run_direct_or_ring(B& block, const KernelArguments& call, int channel) {
  using Direct = DeviceDirect<Reduction, B>;
  BlockState& state = call.rank.blocks[channel];
  if (state.failed != 0) return;
  const typename Direct::Outcome outcome = run_direct_alone<Reduction>(block, call, channel);
  if (outcome == Direct::Outcome::unreachable) run_ring<Reduction>(block, call, channel);
}

}  // namespace rondo::detail::gpu
