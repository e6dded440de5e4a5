// What the device protocol stands on: a block of threads that work together. A CUDA block is one
// (kernels/cuda_block.hpp); so are host threads (tests/cuda/host_block.hpp), which is how the whole
// protocol runs where there is no GPU. All of these are called by every thread of the block alike,
// but for pause, now_ns and claim.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "fifo/fifo.hpp"

namespace rondo::detail::gpu {

// What the threads of a block share besides the FIFO ends. Written by the leader or by who claimed;
// read by the others after the next sync().
struct BlockShared {
  const std::byte* received = nullptr;
  std::byte* sent = nullptr;
  int claimed = 0;
};

template <class B>
concept Block = requires(B& block, bool ok) {
  { block.thread() } -> std::convertible_to<unsigned>;
  { block.threads() } -> std::convertible_to<unsigned>;
  { block.leader() } -> std::same_as<bool>;  // the thread that waits and publishes for all
  block.sync();                              // what any thread wrote before, all see after
  { block.all(ok) } -> std::same_as<bool>;   // a sync(); whether ok was true on every thread
  block.pause();                             // between two looks at something awaited
  { block.now_ns() } -> std::convertible_to<std::uint64_t>;
  { block.claim() } -> std::same_as<bool>;  // true for one thread of the block, once
  { block.shared() } -> std::same_as<BlockShared&>;
  { block.to() } -> std::same_as<SendEnd*>;  // room for an end towards each position of the ring
  { block.from() } -> std::same_as<RecvEnd*>;
};

}  // namespace rondo::detail::gpu
