// A call's signature, which must be equal on all ranks, and the numbers of messages.
#pragma once

#include <cstdint>

#include <rondo/call.hpp>

#include "fifo/signature.hpp"

namespace rondo::detail {

// Returns the signature of a collective of `ranks` ranks, with all fields except the sequence
// number.
Signature signature_of(const Call& call, Algorithm algorithm, int ranks);
// The `type` of a call with a reduction of the program. Its `count` is in bytes, and its `op` a
// digest of what is known of the reduction.
inline constexpr std::uint8_t kOfUser = 255;
// The `root` of an all_to_all in which each rank has counts of its own.
inline constexpr std::int32_t kCountsOfEachRank = -1;

// The bytes of the call's vector, as far as they are the same on all ranks.
std::uint64_t bytes_of(const Signature& signature);
// The root of a call that has one; of an all_reduce, the function that it is a part of, as a
// number.
int root_of(const Signature& signature);
// What stands beside the root: a checksum of the counts, or of a list's sizes; 0: none.
std::uint32_t checksum_of(const Signature& signature);

// The number of the first message between two ranks of a communicator. The upper half tells the
// messages of different communicators apart: MPI might hand a message that nobody has received to a
// later communicator.
std::uint64_t first_message(std::uint64_t session);
// That of the message after it: only the lower half counts, and begins again after 2^32 messages.
std::uint64_t number_after(std::uint64_t message);
// The lower half; kAllMessages for messages between devices.
std::uint64_t number_of_message(const Signature& message);
inline constexpr std::uint64_t kAllMessages = 0xffffffff;
bool is_message_of(const Signature& message, std::uint64_t session);
// The number of all messages between devices of a communicator, whose kernels do not count
// messages: a FIFO keeps their order.
std::uint64_t device_message_number(std::uint64_t session);
// Returns the signature of a message, which is the same on both ranks. `number` counts the messages
// from the one rank to the other.
Signature signature_of_message(int from, std::uint64_t number, std::uint64_t count, DataType type);

// Whether `signature` belongs to a send, a recv or half of a sendrecv.
bool is_message_signature(const Signature& signature);

}  // namespace rondo::detail
