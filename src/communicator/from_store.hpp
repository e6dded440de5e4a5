// Joining at a store, for processes that a launcher has started: what rondo::from_store() does, and
// more is known of the run.
#pragma once

#include <rondo/communicator.hpp>
#include <rondo/options.hpp>

#include "bootstrap/launchers.hpp"

namespace rondo::detail {

// Throws what from_store() throws.
Communicator join_at_store(const LaunchedRank& launched, const CommunicatorOptions& options);

}  // namespace rondo::detail
