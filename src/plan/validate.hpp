// Checks a call before anything moves.
#pragma once

#include <rondo/call.hpp>

namespace rondo::detail {

// Throws UsageError that says what is wrong and how to mend it.
void validate(const Call& call, int rank, int size);

}  // namespace rondo::detail
