// How an error names a call, and the texts of errors.
#pragma once

#include <string>

#include "engine/failure.hpp"
#include "engine/wiring.hpp"
#include "fifo/signature.hpp"

namespace rondo::detail {

// What the error for a message whose deadline has passed tells the user to look at.
extern const char* const kUnmatchedMessage;

// "call 7 all_reduce(100 x f32, sum) by ring"; "call 8, a part of split" for those that the library
// makes itself
std::string describe(const Signature& signature);

// "4 slices received, 262144 bytes sent"
std::string describe(const Progress& progress);

// The error text for a deadline that has passed. `who` waited for rank `peer` ("rank 0", or "rank
// 0: its device"); `so_far`: how far it came; `missing`: sentences on ranks that have not made the
// call.
std::string text_of_timeout(const std::string& who, int peer, const Signature& call,
                            const std::string& so_far, const std::string& missing);

// The error text for a rank that has ended, or has left, or whose host has vanished.
std::string text_of_missing(const Wiring& wiring, const Signature& signature,
                            const Failure& failure, const std::string& so_far);

// Sentences on the ranks of this host that have not made the call.
std::string who_is_missing(const Wiring& wiring, const Signature& signature);

// The error text for two ranks that made different calls.
std::string text_of_mismatch(int rank, const Signature& mine, int peer, const Signature& theirs);

}  // namespace rondo::detail
