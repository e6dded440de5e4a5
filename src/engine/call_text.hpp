// A call's signature, and how an error names the call.
#pragma once

#include <string>

#include <rondo/communicator.hpp>

#include "fifo/signature.hpp"

namespace rondo::detail {

// Sets all fields but the sequence number.
Signature signature_of(const Call& call, Algorithm algorithm);

// "call 7 all_reduce(100 x f32, sum) by ring"
std::string describe(const Signature& signature);

// The error text for two ranks that made different calls.
std::string text_of_mismatch(int rank, const Signature& mine, int peer, const Signature& theirs);

}  // namespace rondo::detail
