// A link's bounded queue of fixed-size slots: one producer, one consumer, somewhere in memory that
// both can reach. Host and device compile this header alike; docs/ring.md explains the protocol.
//
//   tail  how many slots were ever published. Written by the producer only, with release, after the
//         slot; read by the consumer with acquire, before the slot.
//   head  how many slots were ever released. Written by the consumer only, with release, after its
//         last read of the slot; read by the producer with acquire, before it writes the slot
//         again.
//
// Both only grow, and live as long as the communicator. Slot number i of the stream is in slot
// i mod slots. `published − released` is at most `slots`, so neither side ever overtakes the other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/portable.hpp"
#include "fifo/atomics.hpp"
#include "fifo/signature.hpp"

namespace rondo::detail {

// Two cache lines, since processors fetch lines in pairs: no two counters share a pair.
inline constexpr std::size_t kCounterSpacing = 128;

struct FifoGeometry {
  std::uint64_t slot_bytes = 0;  // payload, a multiple of 64
  std::uint32_t slots = 0;
};

// Stands in front of each slot's payload.
struct alignas(64) SlotHeader {
  Signature signature;
  std::uint64_t bytes = 0;  // payload in use
};
static_assert(sizeof(SlotHeader) == 64);

struct FifoCounter {
  alignas(kCounterSpacing) std::uint64_t value = 0;
};

// Where the parts of a FIFO are, as one side sees them.
struct FifoMemory {
  FifoCounter* tail = nullptr;
  FifoCounter* head = nullptr;
  std::byte* slots = nullptr;
  FifoGeometry geometry;

  [[nodiscard]] RONDO_HOST_DEVICE std::uint64_t slot_stride() const {
    return sizeof(SlotHeader) + geometry.slot_bytes;
  }
  [[nodiscard]] RONDO_HOST_DEVICE SlotHeader* slot(std::uint64_t number) const {
    return reinterpret_cast<SlotHeader*>(slots + (number % geometry.slots) * slot_stride());
  }
};

RONDO_HOST_DEVICE inline std::byte* payload(SlotHeader* slot) {
  return reinterpret_cast<std::byte*>(slot + 1);
}
RONDO_HOST_DEVICE inline const std::byte* payload(const SlotHeader* slot) {
  return reinterpret_cast<const std::byte*>(slot + 1);
}

constexpr std::uint64_t slots_bytes(const FifoGeometry& geometry) {
  return geometry.slots * (sizeof(SlotHeader) + geometry.slot_bytes);
}

// The size of a FIFO whose parts are contiguous, and the FIFO at `base`, which is zeroed memory
// aligned to kCounterSpacing.
constexpr std::uint64_t contiguous_fifo_bytes(const FifoGeometry& geometry) {
  const std::uint64_t bytes = 2 * sizeof(FifoCounter) + slots_bytes(geometry);
  return (bytes + kCounterSpacing - 1) / kCounterSpacing * kCounterSpacing;
}
inline FifoMemory contiguous_fifo(std::byte* base, const FifoGeometry& geometry) {
  return {reinterpret_cast<FifoCounter*>(base),
          reinterpret_cast<FifoCounter*>(base + sizeof(FifoCounter)),
          base + 2 * sizeof(FifoCounter), geometry};
}

// The producer's end. Used by one thread at a time.
class SendEnd {
 public:
  SendEnd() = default;
  explicit SendEnd(const FifoMemory& memory) : memory_(memory) {}

  // Whether the slot that `slot()` returns is free.
  [[nodiscard]] RONDO_HOST_DEVICE bool can_acquire() {
    if (published_ - released_ < memory_.geometry.slots) return true;
    // Acquire pairs with the consumer's release of `head`: its reads of the slot are over.
    released_ = load_acquire(memory_.head->value);
    return published_ - released_ < memory_.geometry.slots;
  }
  [[nodiscard]] RONDO_HOST_DEVICE SlotHeader* slot() const { return memory_.slot(published_); }
  // The slot `ahead` places after slot(): a carrier fills several at once, then publishes in
  // order.
  [[nodiscard]] RONDO_HOST_DEVICE SlotHeader* slot(std::uint64_t ahead) const {
    return memory_.slot(published_ + ahead);
  }
  [[nodiscard]] RONDO_HOST_DEVICE std::uint64_t free_slots() {
    released_ = load_acquire(memory_.head->value);
    return memory_.geometry.slots - (published_ - released_);
  }
  RONDO_HOST_DEVICE void publish() {
    ++published_;
    // Release pairs with the consumer's acquire of `tail`: it sees the slot's bytes.
    store_release(memory_.tail->value, published_);
  }
  // The same after fence_before_stores(), before which all of the slot was written.
  RONDO_HOST_DEVICE void publish_after_fence() {
    ++published_;
    store_after_fence(memory_.tail->value, published_);
  }
  [[nodiscard]] const FifoGeometry& geometry() const { return memory_.geometry; }
  // For a host that copies an end from a device's memory: where the head is, and what it will be
  // when all is released.
  [[nodiscard]] const FifoCounter* head() const { return memory_.head; }
  [[nodiscard]] std::uint64_t published() const { return published_; }

 private:
  FifoMemory memory_;
  std::uint64_t published_ = 0;  // my own counter; `tail` mirrors it
  std::uint64_t released_ = 0;   // the last `head` seen
};

// The consumer's end. Used by one thread at a time.
class RecvEnd {
 public:
  RecvEnd() = default;
  explicit RecvEnd(const FifoMemory& memory) : memory_(memory) {}

  // Whether the slot that `slot()` returns has been published.
  [[nodiscard]] RONDO_HOST_DEVICE bool can_peek() {
    if (published_ != released_) return true;
    // Acquire pairs with the producer's release of `tail`.
    published_ = load_acquire(memory_.tail->value);
    return published_ != released_;
  }
  [[nodiscard]] RONDO_HOST_DEVICE const SlotHeader* slot() const { return memory_.slot(released_); }
  // The slot `ahead` places after slot(): a carrier has several under way, then releases in order.
  [[nodiscard]] RONDO_HOST_DEVICE const SlotHeader* slot(std::uint64_t ahead) const {
    return memory_.slot(released_ + ahead);
  }
  [[nodiscard]] RONDO_HOST_DEVICE std::uint64_t published_slots() {
    published_ = load_acquire(memory_.tail->value);
    return published_ - released_;
  }
  RONDO_HOST_DEVICE void release() {
    ++released_;
    // Release pairs with the producer's acquire of `head`: my reads of the slot came before.
    store_release(memory_.head->value, released_);
  }
  // The same after fence_before_stores(), before which all of the slot was read.
  RONDO_HOST_DEVICE void release_after_fence() {
    ++released_;
    store_after_fence(memory_.head->value, released_);
  }
  [[nodiscard]] const FifoGeometry& geometry() const { return memory_.geometry; }

 private:
  FifoMemory memory_;
  std::uint64_t released_ = 0;   // my own counter; `head` mirrors it
  std::uint64_t published_ = 0;  // the last `tail` seen
};

}  // namespace rondo::detail
