// Calls between ncclGroupStart() and ncclGroupEnd(), which are made together at the end.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <memory>
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

// The place of a call among those of a group: the same for both sides of a message, and for the
// same collective on all ranks.
struct Turn {
  int round = 0;  // that of a message; collectives come before
  std::size_t number = 0;

  friend auto operator<=>(const Turn&, const Turn&) = default;
};

struct CallInTurn {
  Turn turn;
  Call call;
};

// The calls that carry these messages of rank `rank`, whichever way the ranks have ordered them.
//
// All ranks go through the same rounds: in round k, a rank sends to the k-th rank after it and
// receives from the k-th rank before it, so that both sides of a message are in the same round, and
// a round of two ranks' messages is one sendrecv. Rank 1 of 4, which has a message for each rank
// and gets one from each, makes: 1 to 1; 1 to 2 and 0 to 1; 1 to 3 and 3 to 1; 1 to 0 and 2 to 1.
// Several messages from one rank to another are rounds of their own, in their order.
//
// If both sides of each message are in a group of their rank, no ranks can wait for each other in a
// circle: of all unfinished messages, take one of the earliest round; its other side is in that
// round, too, since it can be neither in an earlier one, nor in a later one, which begins after
// this message. That does not hold for ranks that make their sides one by one: such a rank chooses
// an order, which must be the one here where a peer has several messages in one group.
std::vector<CallInTurn> calls_for(const std::vector<Message>& messages, int rank, int size);

// Makes the call now, or, if this thread is in a group, at its end.
void enqueue(ncclComm& comm, const Call& call, cuda::Stream stream);
void enqueue(ncclComm& comm, const Message& message);

// Says that a call of this thread's group was refused: then, as in NCCL, ncclGroupEnd() makes none
// of the group and returns `result`. Returns it, too.
ncclResult_t refused_in_group(ncclResult_t result);

// Runs `join`, which waits for other ranks and makes communicators; in a group at its end, together
// with the others of the group. Those of one `parent` run one after the other.
void join_together(const ncclComm* parent, std::function<void()> join);
// Runs all of them now, each on a thread of its own, and throws the first exception of any.
void run_together(const std::vector<std::function<void()>>& joins);

// That of the communicators which this thread's group makes; null outside a group.
std::shared_ptr<Family> family_of_group();

// Destroys the communicators; in a group at its end, when all that the group aborts are aborted.
void destroy(std::vector<std::unique_ptr<ncclComm>> comms);

}  // namespace rondo::nccl_programs
