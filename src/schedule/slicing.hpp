// How a vector is cut: into chunks, which ranks own, and chunks into slices, which fit a FIFO slot.
//
// Slices are walked in windows: a rank does all steps of its schedule for the first `window` slices
// of every chunk, then for the next `window`, and so on. Within a step it publishes at most
// `window` slices before it takes any, so with a FIFO of more than `window` slots a slot is always
// free for the rank whose turn it is, and no ranks wait for each other in a circle (tests/schedule
// proves it by running all ranks). A wider window hides the latency of a hop behind the slices that
// are under way.
//
// A step may lag one window behind: it then handles the window before the one whose turn it is, and
// a rank publishes up to two windows before it takes any. That needs a FIFO of at least two
// windows, which window_for() leaves; where several steps of a turn send along one edge, of two
// windows for each of them (tree_steps.hpp).
//
// Several channels are independent rings side by side, each with FIFOs of its own: channel c of C
// takes the c-th part of every chunk.
#pragma once

#include <cstdint>

#include <rondo/chunk.hpp>

#include "base/portable.hpp"

namespace rondo::detail {

// The ring's all_reduce of host memory cuts its vector at multiples of this many bytes, so that
// chunk `i` of one with `count` elements is `chunk_range(count, ranks, i, kChunkGranuleBytes /
// size_of(type))`.
inline constexpr std::uint64_t kChunkGranuleBytes = 64;

// The same in elements of so many bytes.
RONDO_HOST_DEVICE constexpr std::uint64_t granule_elems(std::uint64_t element_bytes) {
  return element_bytes < kChunkGranuleBytes ? kChunkGranuleBytes / element_bytes : 1;
}

struct Slicing {
  std::uint64_t count = 0;  // elements of the vector
  std::uint64_t chunks = 1;
  std::uint64_t granule = 1;      // chunk borders fall on multiples of this
  std::uint64_t slice_elems = 1;  // elements that fit a slot
  std::uint64_t window = 1;       // slices of a chunk that one pass over the steps handles
  std::uint64_t channels = 1;
  std::uint64_t channel = 0;
  std::uint64_t channel_granule =
      1;  // borders between channels, within a chunk; divides slice_elems
  // Where chunk i begins, and, one after the last, where they end; on a device, in its memory.
  // Null: the chunks are those of chunk_range.
  const std::uint64_t* borders = nullptr;
  std::uint64_t largest = 0;  // a chunk that no other exceeds
  // The same of chunks that are received, where these have other sizes than those that are sent: in
  // all_to_all with counts, on hosts alone. Null: they are the same.
  const std::uint64_t* received_borders = nullptr;
  std::uint64_t largest_received = 0;

  // The part of a chunk that this channel carries. `received`: of one that is received.
  [[nodiscard]] RONDO_HOST_DEVICE constexpr Range part(std::uint64_t index,
                                                       bool received = false) const {
    if (!kOnDevice && received && received_borders != nullptr) {
      return {received_borders[index], received_borders[index + 1] - received_borders[index]};
    }
    const Range chunk = chunk_of(index);
    if (channels == 1) return chunk;
    const Range mine = chunk_range(chunk.count, channels, channel, channel_granule);
    return {chunk.offset + mine.offset, mine.count};
  }
  // At least one: an empty part is sent as one empty slice, so that ranks still compare their
  // calls.
  [[nodiscard]] RONDO_HOST_DEVICE constexpr std::uint64_t slices(const Range& part) const {
    const std::uint64_t needed = part.count / slice_elems + (part.count % slice_elems != 0 ? 1 : 0);
    return needed == 0 ? 1 : needed;
  }
  [[nodiscard]] RONDO_HOST_DEVICE constexpr std::uint64_t windows_of(const Range& part) const {
    return (slices(part) + window - 1) / window;
  }
  // The largest chunk's part has at least as many slices as that of any other chunk.
  [[nodiscard]] RONDO_HOST_DEVICE constexpr std::uint64_t windows() const {
    const std::uint64_t sent = windows_of(part(largest));
    if (kOnDevice || received_borders == nullptr) return sent;
    const std::uint64_t received = windows_of(part(largest_received, true));
    return sent < received ? received : sent;
  }
  [[nodiscard]] RONDO_HOST_DEVICE constexpr Range slice(const Range& part,
                                                        std::uint64_t number) const {
    const std::uint64_t begin = number * slice_elems;
    const std::uint64_t left = part.count - begin;
    return {part.offset + begin, left < slice_elems ? left : slice_elems};
  }

 private:
  [[nodiscard]] RONDO_HOST_DEVICE constexpr Range chunk_of(std::uint64_t index) const {
    if (borders == nullptr) return chunk_range(count, chunks, index, granule);
    return {borders[index], borders[index + 1] - borders[index]};
  }
};

// The widest safe window for a FIFO of `slots` slots leaves one slot free; a window of half the
// slots keeps both ends busy.
RONDO_HOST_DEVICE constexpr std::uint64_t window_for(std::uint32_t slots) {
  return slots <= 2 ? 1 : slots / 2;
}

}  // namespace rondo::detail
