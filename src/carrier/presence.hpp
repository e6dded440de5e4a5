// By its presence a rank shows the other ranks of its host how many calls it has entered and ended,
// the signature of the last one and where its buffers are, whether it is touching the others'
// buffers, the last call that it has confirmed, and whether it has left. A presence lies in memory
// that the ranks share; zeroed memory is that of a rank that has entered no call. Its owner alone
// calls enter(), the functions that say what the owner does, and leave(); any rank calls those that
// ask.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>

#include "fifo/atomics.hpp"
#include "fifo/signature.hpp"

namespace rondo::detail {

// Where the other ranks find a rank's buffers in a call, in the words of memory/reach.hpp.
struct BufferLocations {
  std::uint64_t in = 0;
  std::uint64_t out = 0;
};

// A call, as a rank shows it.
struct ShownCall {
  Signature signature;
  BufferLocations buffers;
};

class alignas(128) Presence {
 public:
  // The owner alone calls the functions from here to leave().

  // The owner enters a call.
  void enter(const ShownCall& call) {
    // Readers discard words that are being changed: a reader that sees a new word also sees the new
    // `begun_`.
    store_release(begun_, call.signature.sequence);
    const auto words = std::bit_cast<Words>(call);
    for (std::size_t i = 0; i < words.size(); ++i) store_release(words_[i], words[i]);
    store_release(complete_, call.signature.sequence + 1);
  }

  // From now on the owner reads and writes the buffers of the other ranks, for call number
  // `sequence`. The store is sequentially consistent, as is the look at the abort board that
  // follows: engine/touching.hpp says why.
  void begin_touching(std::uint64_t sequence) {
    std::atomic_ref(touching_).exchange(2 * sequence + 1, std::memory_order_seq_cst);
  }
  // After begin_touching(): the call has failed, and the owner does not touch the buffers any more.
  // Its part counts as not done. The store is a release: for a rank that reads it, the owner's last
  // reads and writes are over.
  void renounce_touching(std::uint64_t sequence) { store_release(touching_, 2 * sequence); }
  // The owner's part is done, and it does not touch the buffers any more. The store is a release: a
  // rank that reads it also reads what the owner wrote.
  void end_touching(std::uint64_t sequence) { store_release(touching_, 2 * sequence + 2); }

  // The owner has written its stage of pass number `passes` of the communicator, counted from 1.
  void arrive(std::uint64_t passes) { store_release(arrived_, passes); }
  // Call number `sequence` is over.
  void end(std::uint64_t sequence) { store_release(ended_, sequence + 1); }
  // All ranks make call number `sequence` as the owner does.
  void confirm(std::uint64_t sequence) { store_release(confirmed_, sequence + 1); }
  // The owner will make no further call.
  void leave() { store_release(left_, 1); }

  // Any rank calls the functions below.

  // Whether the owner has written its stage of pass number `passes`, or of a later one.
  [[nodiscard]] bool has_arrived(std::uint64_t passes) { return load_acquire(arrived_) >= passes; }

  // Whether the owner has ended call number `sequence`, so that no rank waits for it in that call.
  [[nodiscard]] bool has_ended(std::uint64_t sequence) { return load_acquire(ended_) > sequence; }
  // Whether the owner has confirmed call number `sequence`, or a later one.
  [[nodiscard]] bool has_confirmed(std::uint64_t sequence) {
    return load_acquire(confirmed_) > sequence;
  }
  // Whether the owner has destroyed its communicator without making call number `sequence`.
  [[nodiscard]] bool left_before(std::uint64_t sequence) {
    return load_acquire(left_) != 0 && !has_entered(sequence);
  }

  // Whether the owner has destroyed its communicator.
  [[nodiscard]] bool has_left() { return load_acquire(left_) != 0; }

  // Whether the owner has entered call number `sequence`.
  [[nodiscard]] bool has_entered(std::uint64_t sequence) {
    return load_acquire(complete_) > sequence;
  }

  // Whether the owner is touching the buffers of the others for call number `sequence`.
  [[nodiscard]] bool is_touching(std::uint64_t sequence) {
    return std::atomic_ref(touching_).load(std::memory_order_seq_cst) == 2 * sequence + 1;
  }
  // Whether the owner's part in touching them is done.
  [[nodiscard]] bool has_touched(std::uint64_t sequence) {
    return load_acquire(touching_) >= 2 * sequence + 2;
  }

  // Returns the owner's call number `sequence`, if that is the last one that the owner has entered.
  [[nodiscard]] std::optional<ShownCall> call(std::uint64_t sequence) {
    if (load_acquire(complete_) != sequence + 1) return std::nullopt;
    return read(sequence);
  }
  // Returns the last call that the owner has entered; nothing if there is none, or the owner is
  // just entering one.
  [[nodiscard]] std::optional<ShownCall> last_call() {
    const std::uint64_t complete = load_acquire(complete_);
    return complete == 0 ? std::nullopt : read(complete - 1);
  }

 private:
  using Words = std::array<std::uint64_t, sizeof(ShownCall) / sizeof(std::uint64_t)>;

  // Call this only when `complete_` is `sequence` + 1.
  [[nodiscard]] std::optional<ShownCall> read(std::uint64_t sequence) {
    Words words{};
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = load_acquire(words_[i]);
    if (load_acquire(begun_) != sequence) return std::nullopt;
    return std::bit_cast<ShownCall>(words);
  }

  // Only the owner writes them. Each is written with release and read by other ranks with acquire,
  // except that begin_touching() and is_touching() are sequentially consistent. enter() and read()
  // say in which order the first three are written and read. These three fill one cache line, the
  // one that ranks wait for in `direct`.
  std::uint64_t complete_ = 0;  // one more than the number of the call that `words_` describes
  std::uint64_t begun_ = 0;     // the number of the call that is, or is being, written to `words_`
  Words words_{};
  // 2k + 1 while the owner touches the buffers of the others for call number k, 2k + 2 from then
  // on; 2k if it does not.
  std::uint64_t touching_ = 0;
  std::uint64_t arrived_ = 0;    // passes at which the owner has arrived: engine/inside.hpp
  std::uint64_t ended_ = 0;      // calls that the owner has ended
  std::uint64_t confirmed_ = 0;  // one more than the number of the last call that it confirmed
  std::uint64_t left_ = 0;       // 1 when the owner will enter no more calls
};
static_assert(sizeof(Presence) == 128);

}  // namespace rondo::detail
