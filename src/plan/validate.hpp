// Checks a call before anything moves.
#pragma once

#include <rondo/call.hpp>

namespace rondo::detail {

// Throws UsageError that says what is wrong with a call of this rank.
void validate(const Call& call, int rank, int size);

// The same, except for its buffers.
void validate_without_buffers(const Call& call, int rank, int size);

}  // namespace rondo::detail
