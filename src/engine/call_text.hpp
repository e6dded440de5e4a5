// A call's signature, and how an error names the call.
#pragma once

#include <cstdint>
#include <string>

#include <rondo/call.hpp>

#include "engine/failure.hpp"
#include "fifo/signature.hpp"

namespace rondo::detail {

// Of a collective of `ranks` ranks. Sets all fields except the sequence number.
Signature signature_of(const Call& call, Algorithm algorithm, int ranks);
// The number of the first message between two ranks of a communicator. The upper half tells the messages of different
// communicators apart: MPI might hand a message that nobody has received to a later communicator.
std::uint64_t first_message(std::uint64_t session);
// That of the message after it: only the lower half counts, and begins again after 2^32 messages.
std::uint64_t number_after(std::uint64_t message);
bool is_message_of(const Signature& message, std::uint64_t session);
// The number of all messages between devices of a communicator, whose kernels do not count messages: a FIFO keeps their
// order.
std::uint64_t device_message_number(std::uint64_t session);
// Of a message: the same on both ranks. `number`: among the messages from the one rank to the other.
Signature signature_of_message(int from, std::uint64_t number, std::uint64_t count, DataType type);

// Whether `signature` belongs to a send, a recv or half of a sendrecv.
bool is_message_signature(const Signature& signature);
// What the error for a message whose deadline has passed tells the user to look at.
extern const char* const kUnmatchedMessage;

// "call 7 all_reduce(100 x f32, sum) by ring"; "call 8, a part of split" for those that the library makes itself
std::string describe(const Signature& signature);

// "4 slices received, 262144 bytes sent"
std::string describe(const Progress& progress);

// The error text for a deadline that has passed. `who` waited for rank `peer` ("rank 0", or "rank 0: its device");
// `so_far`: how far it came; `missing`: sentences on ranks that have not made the call.
std::string text_of_timeout(const std::string& who, int peer, const Signature& call,
                            const std::string& so_far, const std::string& missing);

// The error text for two ranks that made different calls.
std::string text_of_mismatch(int rank, const Signature& mine, int peer, const Signature& theirs);

}  // namespace rondo::detail
