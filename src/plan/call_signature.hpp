// A call's signature, which must be equal on all ranks, and the numbers of messages.
#pragma once

#include <cstdint>

#include <rondo/call.hpp>

#include "fifo/signature.hpp"

namespace rondo::detail {

// Returns the signature of a collective of `ranks` ranks, with all fields except the sequence
// number.
Signature signature_of(const Call& call, Algorithm algorithm, int ranks);
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
