// The block of threads that runs the device protocol: a CUDA block (kernels/cuda_block.hpp), or
// host threads (tests/cuda/host_block.hpp), with which the whole protocol runs where there is no
// GPU. Every thread of the block must call each of these functions, except pause, now_ns and claim.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "base/portable.hpp"
#include "fifo/fifo.hpp"

namespace rondo::detail::gpu {

// What the threads of a block share besides the FIFO ends. Written by the leader or by the thread
// whose claim() was true; read by the others after the next sync().
struct BlockShared {
  const std::byte* received = nullptr;
  std::byte* sent = nullptr;
  int claimed = 0;
};

// Where a block finds the buffers of one rank, in a `direct` call: the addresses of the vector's
// element 0, whether or not that lies in the buffer.
struct RankBuffers {
  std::uint64_t in = 0;
  std::uint64_t out = 0;
};

RONDO_HOST_DEVICE inline std::byte* pointer(std::uint64_t address) {
  return reinterpret_cast<std::byte*>(
      address);  // NOLINT(performance-no-int-to-ptr): see RankBuffers
}

template <class B>
concept Block = requires(B& block, bool ok) {
  { block.thread() } -> std::convertible_to<unsigned>;
  { block.threads() } -> std::convertible_to<unsigned>;
  { block.leader() } -> std::same_as<bool>;  // the thread that waits and publishes for all
  block.sync();                              // all threads then see what any thread wrote before
  { block.all(ok) } -> std::same_as<bool>;   // a sync(); whether ok was true on every thread
  block.pause();                             // between two checks of a wait
  { block.now_ns() } -> std::convertible_to<std::uint64_t>;
  { block.claim() } -> std::same_as<bool>;  // true for one thread of the block, once
  { block.shared() } -> std::same_as<BlockShared&>;
  { block.to() } -> std::same_as<SendEnd*>;  // room for an end towards each position of the ring
  { block.from() } -> std::same_as<RecvEnd*>;
  { block.buffers() } -> std::same_as<RankBuffers*>;  // room for each rank
};

}  // namespace rondo::detail::gpu
