// Connecting to one of several addresses, each of which is tried a little after the one before.
#pragma once

#include <vector>

#include "base/deadline.hpp"
#include "bootstrap/addresses.hpp"
#include "bootstrap/meeting_point.hpp"

namespace rondo::detail {

// Tries each address once, for a few seconds and until the deadline at most. An address that does
// not answer holds up the next one for a moment only.
Attempt connect_to_any(const std::vector<Address>& addresses, Clock::time_point deadline);

}  // namespace rondo::detail
