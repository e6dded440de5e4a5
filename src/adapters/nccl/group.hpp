// Calls between ncclGroupStart() and ncclGroupEnd(), which are made together at the end.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <rondo/call.hpp>
#include <rondo/cuda.hpp>

#include "adapters/nccl/communicator.hpp"

namespace rondo::nccl_programs {

// One ncclSend() or ncclRecv(). In bytes, since the types of its two sides may differ in NCCL.
struct Message {
  bool sends = false;
  int peer = 0;
  void* data = nullptr;
  std::size_t bytes = 0;
  cuda::Stream stream = nullptr;
};

// The calls that carry these messages of rank `rank`, whichever way the ranks have ordered them.
//
// All ranks go through the same rounds: in round k, a rank sends to the k-th rank after it and
// receives from the k-th rank before it, so that both sides of a message are in the same round, and
// a round of two ranks' messages is one sendrecv. Rank 1 of 4, which has a message for each rank
// and gets one from each, makes: 1 to 1; 1 to 2 and 0 to 1; 1 to 3 and 3 to 1; 1 to 0 and 2 to 1.
// No ranks can wait for each other in a circle: of all unfinished messages, take one of the
// earliest round; its other side is in that round, too, since it can be neither in an earlier one,
// nor in a later one, which begins after this message. Several messages from one rank to another
// are rounds of their own, in their order.
std::vector<Call> calls_for(const std::vector<Message>& messages, int rank, int size);

// Makes the call, at the end of the group if this thread is in one.
void make(ncclComm& comm, const Call& call, cuda::Stream stream);
void make(ncclComm& comm, const Message& message);

// Runs `join`, which waits for other ranks and makes communicators; in a group at its end, together
// with the others of the group.
void join_together(std::function<void()> join);
// Runs all of them now, each on a thread of its own, and throws the first exception of any.
void run_together(const std::vector<std::function<void()>>& joins);

}  // namespace rondo::nccl_programs
