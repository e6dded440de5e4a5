// Which elements of a call's vector a rank has in its buffers, and the two halves of a sendrecv.
#pragma once

#include <cstdint>

#include <rondo/call.hpp>
#include <rondo/chunk.hpp>

#include "base/collective_traits.hpp"

namespace rondo::detail {

// The two halves of a sendrecv.
inline Call send_of(const Call& call) {
  Call send = call;
  send.collective = Collective::send;
  return send;
}
inline Call recv_of(const Call& call) {
  Call recv = call;
  recv.collective = Collective::recv;
  recv.count = call.received;
  return recv;
}

// A rank's chunk, in calls that give each rank one.
inline Range own_chunk(const Call& call, int rank, int size) {
  if (call.counts == nullptr) {
    return chunk_range(call.count, static_cast<std::uint64_t>(size),
                       static_cast<std::uint64_t>(rank));
  }
  std::uint64_t offset = 0;
  for (int before = 0; before < rank; ++before) offset += call.counts[before];
  return {offset, call.counts[rank]};
}

// The elements of the vector that the call's `in` holds on this rank, and its `out`.
inline Range input_range(const Call& call, int rank, int size) {
  const bool own =
      call.collective == Collective::all_gather || call.collective == Collective::gather;
  return own ? own_chunk(call, rank, size) : Range{0, call.count};
}
inline Range output_range(const Call& call, int rank, int size) {
  const bool another = call.collective == Collective::sendrecv || call.received_counts != nullptr;
  if (another) return {0, call.received};  // another vector
  const bool own =
      call.collective == Collective::reduce_scatter || call.collective == Collective::scatter;
  return own ? own_chunk(call, rank, size) : Range{0, call.count};
}

// Whether this rank's `in` is read, and its `out` written.
inline bool reads_input(const Call& call, int rank) {
  if (call.collective == Collective::recv) return false;
  const bool root_only =
      call.collective == Collective::broadcast || call.collective == Collective::scatter;
  return !root_only || rank == call.root;
}
inline bool writes_output(const Call& call, int rank) {
  if (call.collective == Collective::send) return false;
  const bool root_only =
      call.collective == Collective::reduce || call.collective == Collective::gather;
  return !root_only || rank == call.root;
}

}  // namespace rondo::detail
