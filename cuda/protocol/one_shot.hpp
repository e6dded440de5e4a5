// The small all-reduce and barrier: every rank writes its whole vector into the inbox of every
// other rank at once, and combines what it finds in its own inbox in the order of ranks, so that
// all get the same bits, and those of `direct`. One hop, and no fence: each 8-byte word carries
// data and the flag that says that the data is there.
//
// A unit is 8 bytes of data and travels as two words, each half data and half the number of the
// call, which its receiver waits for. The first units of an inbox are the call's signature. An
// inbox has two halves: call k of a channel uses half k mod 2. No half is overwritten too early: a
// rank writes call k + 2 only after it has ended call k + 1, for which it needed the words of every
// other rank, and a rank sends its words of k + 1 only after it has read all of call k.
//
// Source of the idea: the low-latency protocol of NCCL, as described in Z. Hu et al., "Demystifying
// NCCL" (2025).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "cuda/protocol/arguments.hpp"
#include "cuda/protocol/block.hpp"
#include "cuda/protocol/fold.hpp"
#include "cuda/protocol/patience.hpp"

namespace rondo::detail::gpu {

inline constexpr std::uint64_t kUnitBytes = 8;
inline constexpr std::uint64_t kHeaderUnits = sizeof(Signature) / kUnitBytes;
static_assert(sizeof(Signature) % kUnitBytes == 0);

// A unit under way.
struct Words {
  std::uint64_t low;
  std::uint64_t high;
};

// The inbox of a rank has room, for each channel, half and sender, for `inbox_units` units of data
// and the header.
constexpr std::uint64_t inbox_words(std::uint64_t inbox_units, int channels, int size) {
  return (kHeaderUnits + inbox_units) * 2 * static_cast<std::uint64_t>(channels) *
         static_cast<std::uint64_t>(size);
}

template <class Reduction, Block B>
class OneShot {
  using T = typename Reduction::Element;
  static constexpr std::uint64_t kPerUnit = kUnitBytes / sizeof(T);
  struct Unit {
    T elements[kPerUnit];
  };
  // A signature as units. Read without an index that is known only at run time, which would put it
  // in memory instead of registers.
  struct Header {
    std::uint64_t units[kHeaderUnits] = {};

    [[nodiscard]] RONDO_HOST_DEVICE std::uint64_t operator[](std::uint64_t unit) const {
      std::uint64_t value = 0;
      RONDO_UNROLL
      for (std::uint64_t i = 0; i < kHeaderUnits; ++i) value = i == unit ? units[i] : value;
      return value;
    }
  };

 public:
  RONDO_HOST_DEVICE OneShot(B& block, const KernelArguments& call, int channel)
      : block_(block), call_(call), channel_(channel), patience_{call.timeout_ns, 0} {
    const BlockState& state = call.rank.blocks[channel];
    number_ = state.one_shots + 1;
    signature_ = call.signature;
    signature_.sequence = state.calls;
    header_ = std::bit_cast<Header>(signature_);
    // The host has made the division, which would cost registers here.
    const std::uint64_t begin = static_cast<std::uint64_t>(channel) * call.one_shot_part;
    part_.offset = begin < call.slicing.count ? begin : call.slicing.count;
    const std::uint64_t left = call.slicing.count - part_.offset;
    part_.count = left < call.one_shot_part ? left : call.one_shot_part;
    units_ = kHeaderUnits + (part_.count + kPerUnit - 1) / kPerUnit;
  }

  // The leader calls this when the call is over.
  RONDO_HOST_DEVICE void tell_hosts() { patience_.tell_hosts(call_); }

  // False if a wait of this thread has failed, or a signature differs.
  RONDO_HOST_DEVICE bool run() {
    patience_.to_announce = block_.leader() && channel_ == 0;
    patience_.sequence = signature_.sequence;
    for (std::uint64_t unit = block_.thread(); unit < units_; unit += block_.threads()) send(unit);
    for (std::uint64_t unit = block_.thread(); unit < units_; unit += block_.threads()) {
      if (!finish_unit(unit)) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] RONDO_HOST_DEVICE Words* inbox(int owner, int sender, std::uint64_t unit) const {
    const auto size = static_cast<std::uint64_t>(call_.rank.size);
    const std::uint64_t row = (static_cast<std::uint64_t>(channel_) * 2 + number_ % 2) * size +
                              static_cast<std::uint64_t>(sender);
    return reinterpret_cast<Words*>(call_.rank.inboxes[owner]) +
           row * (kHeaderUnits + call_.rank.inbox_units) + unit;
  }

  RONDO_HOST_DEVICE void send(std::uint64_t unit) {
    const std::uint64_t value = mine(unit);
    const Words words = {(value << 32U) | number_, (value >> 32U << 32U) | number_};
    // Each rank begins with the one after it, so that not all write to one device at a time.
    for (int peer = call_.rank.rank, left = call_.rank.size - 1; left > 0; --left) {
      peer = peer + 1 == call_.rank.size ? 0 : peer + 1;
      Words* to = inbox(peer, call_.rank.rank, unit);
      store_relaxed(to->low, words.low);
      store_relaxed(to->high, words.high);
    }
  }

  [[nodiscard]] RONDO_HOST_DEVICE bool complete(const Words& words) const {
    return static_cast<std::uint32_t>(words.low) == number_ &&
           static_cast<std::uint32_t>(words.high) == number_;
  }
  RONDO_HOST_DEVICE static std::uint64_t data_of(const Words& words) {
    return (words.low >> 32U) | (words.high >> 32U << 32U);
  }

  RONDO_HOST_DEVICE RONDO_FORCE_INLINE bool receive(int peer, std::uint64_t unit,
                                                    std::uint64_t& value) {
    Words* from = inbox(call_.rank.rank, peer, unit);
    Words words{};
    const FailureKind kind = wait_until(block_, call_, patience_, [&] {
      words = {load_relaxed(from->low), load_relaxed(from->high)};
      return complete(words);
    });
    value = data_of(words);
    if (kind != FailureKind::none) fail(kind, peer, {});
    return kind == FailureKind::none;
  }

  // How many peers are read at once: the words of all of them are loaded before the first is
  // checked, and the thread waits only for words that have not arrived.
  static constexpr int kPeersAtOnce = 4;

  // Calls `take(rank, value)` with this unit of every rank, in the order of ranks, until it returns
  // false. Returns false then, and if a wait has failed.
  template <class Take>
  RONDO_HOST_DEVICE RONDO_FORCE_INLINE bool from_all(std::uint64_t unit, Take take) {
    const int size = call_.rank.size;
    for (int first = 0; first < size; first += kPeersAtOnce) {
      Words early[kPeersAtOnce];
      RONDO_UNROLL
      for (int i = 0; i < kPeersAtOnce; ++i) {
        if (first + i >= size || first + i == call_.rank.rank) continue;
        Words* from = inbox(call_.rank.rank, first + i, unit);
        early[i] = {load_relaxed(from->low), load_relaxed(from->high)};
      }
      RONDO_UNROLL
      for (int i = 0; i < kPeersAtOnce; ++i) {
        const int peer = first + i;
        if (peer >= size) break;
        std::uint64_t value = 0;
        if (peer == call_.rank.rank) {
          value = mine(unit);
        } else if (complete(early[i])) {
          value = data_of(early[i]);
        } else if (!receive(peer, unit, value)) {
          return false;
        }
        if (!take(peer, value)) return false;
      }
    }
    return true;
  }

  // Compares this unit of the signature with the other ranks', or reduces the elements of this
  // unit. One loop for both: a second one would cost registers.
  RONDO_HOST_DEVICE bool finish_unit(std::uint64_t unit) {
    const int size = call_.rank.size;
    const bool of_signature = unit < kHeaderUnits;
    int differing_rank = call_.rank.rank;
    Sums<Reduction, std::uint64_t> sums;
    const AverageFactors average = Reduction::average(size);
    const bool all = from_all(unit, [&](int peer, std::uint64_t value) {
      if (of_signature) {
        if (value != header_[unit]) differing_rank = peer;
        return differing_rank == call_.rank.rank;
      }
      if (peer == 0) {
        sums.begin_with(value, average);
      } else {
        sums.add(value, average);
      }
      return true;
    });
    if (all && !of_signature) store(unit, sums.result(average));
    if (differing_rank != call_.rank.rank) tell_mismatch(differing_rank);
    return all;
  }

  RONDO_HOST_DEVICE void tell_mismatch(int peer) {
    Header theirs;
    RONDO_UNROLL
    for (std::uint64_t i = 0; i < kHeaderUnits; ++i) {
      if (!receive(peer, i, theirs.units[i])) return;
    }
    fail(FailureKind::mismatched, peer, std::bit_cast<Signature>(theirs));
  }

  // The elements of this unit, as a range of the whole vector.
  [[nodiscard]] RONDO_HOST_DEVICE Range elements(std::uint64_t unit) const {
    const std::uint64_t begin = (unit - kHeaderUnits) * kPerUnit;
    const std::uint64_t left = part_.count - begin;
    return {part_.offset + begin, left < kPerUnit ? left : kPerUnit};
  }

  [[nodiscard]] RONDO_HOST_DEVICE std::uint64_t mine(std::uint64_t unit) const {
    if (unit < kHeaderUnits) return header_[unit];
    const Range range = elements(unit);
    const auto* from = reinterpret_cast<const T*>(call_.in) + range.offset;
    Unit values{};
    for (std::uint64_t i = 0; i < kPerUnit; ++i) {
      if (i < range.count) values.elements[i] = from[i];
    }
    return std::bit_cast<std::uint64_t>(values);
  }

  RONDO_HOST_DEVICE void store(std::uint64_t unit, std::uint64_t value) const {
    const Range range = elements(unit);
    auto* to = reinterpret_cast<T*>(call_.out) + range.offset;
    const auto values = std::bit_cast<Unit>(value);
    for (std::uint64_t i = 0; i < kPerUnit; ++i) {
      if (i < range.count) to[i] = values.elements[i];
    }
  }

  RONDO_HOST_DEVICE void fail(FailureKind kind, int peer, const Signature& theirs) {
    if (!block_.claim()) return;
    KernelFailure reason;
    reason.kind = static_cast<std::uint64_t>(kind);
    reason.peer = peer;
    reason.mine = signature_;
    reason.theirs = theirs;
    give_up(call_.rank.control, call_.rank.rank, channel_, reason);
  }

  B& block_;
  const KernelArguments& call_;
  int channel_;
  Patience patience_;
  std::uint32_t number_ = 0;
  Signature signature_;
  Header header_;
  Range part_;
  std::uint64_t units_ = 0;
};

// One block's part in one call. By every thread of the block.
template <class Reduction, Block B>
RONDO_HOST_DEVICE void run_one_shot(B& block, const KernelArguments& call, int channel) {
  BlockState& state = call.rank.blocks[channel];
  if (state.failed != 0) return;
  OneShot<Reduction, B> call_of_mine(block, call, channel);
  const bool ok = block.all(call_of_mine.run());
  if (block.leader()) {
    call_of_mine.tell_hosts();
    ++state.calls;
    ++state.one_shots;
    state.failed = ok ? 0 : 1;
  }
}

}  // namespace rondo::detail::gpu
