// The arguments of a kernel. Passed by value, and constant in a captured graph: all that changes
// from one call to the next is in memory that the kernels keep (BlockState, the FIFO ends).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/protocol/control.hpp"
#include "cuda/protocol/post.hpp"
#include "fifo/fifo.hpp"
#include "fifo/signature.hpp"
#include "schedule/direct_part.hpp"
#include "schedule/schedule.hpp"
#include "schedule/slicing.hpp"

namespace rondo::detail::gpu {

inline constexpr int kMostThreads = 512;  // of a block

// One for each block of a call. Lives in device memory as long as the communicator. Used by one
// block at a time: calls of one communicator follow each other.
struct BlockState {
  std::uint64_t calls = 0;      // collectives that used this block; messages are not counted
  std::uint32_t one_shots = 0;  // of them, by one_shot
  std::uint32_t failed = 0;     // not 0: it runs no further call
};

// A rank as its kernels see it; all pointers are valid on its device.
struct RankView {
  int rank = 0;
  int size = 1;
  const std::int32_t* ring = nullptr;  // rank at each position
  BlockState* blocks = nullptr;
  SendEnd* to = nullptr;           // [channel][position of the peer]
  RecvEnd* from = nullptr;         // [channel][position of the peer]
  SendEnd* pairwise_to = nullptr;  // the same of the edges for `pairwise`
  RecvEnd* pairwise_from = nullptr;
  std::uint64_t message_number = 0;     // in the signatures of all messages of this communicator
  std::byte* const* inboxes = nullptr;  // of each rank, for one_shot; this rank's own among them
  std::uint64_t inbox_units = 0;        // units of data that a channel's inbox holds from each rank
  Post* const* posts = nullptr;         // of each rank, for direct: [channel][the rank that shows]
  Control control;
};

// Where each rank's kernels find a buffer of this rank.
struct ShownBuffer {
  // Addresses of the registered block that holds the buffer, by rank; null: all ranks use the same
  // addresses.
  const std::uint64_t* blocks = nullptr;
  std::uint64_t offset =
      0;  // from there to element 0 of the vector; the address itself if `blocks` is null

  [[nodiscard]] RONDO_HOST_DEVICE std::uint64_t as_seen_by(int rank) const {
    return (blocks == nullptr ? 0 : blocks[rank]) + offset;
  }
};

struct KernelArguments {
  RankView rank;
  Schedule schedule;
  Slicing slicing;      // each block sets its own channel
  Signature signature;  // each block of a collective sets the number of the call
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::uint64_t in_origin = 0;  // which element of the vector comes first in `in`
  std::uint64_t out_origin = 0;
  std::uint64_t timeout_ns = 0;
  std::uint64_t one_shot_part =
      0;  // elements of a channel, by one_shot: the last channels may have fewer
  bool chunks_are_ranks = false;
  // In a sendrecv `receiving_channels` blocks, after the first `slicing.channels`, receive
  // `received` elements.
  int receiving_channels = 0;
  std::uint64_t received = 0;
  DirectCall direct;
  bool reachable = false;  // by all ranks: the buffers that `direct` needs of this one
  ShownBuffer shown_in;
  ShownBuffer shown_out;
};

}  // namespace rondo::detail::gpu
