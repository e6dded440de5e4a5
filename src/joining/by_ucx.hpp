// UCX as the network of a communicator.
#pragma once

#include <chrono>
#include <string>

#include <rondo/options.hpp>

#include "joining/wire.hpp"

namespace rondo::detail {

// With the settings that the environment has for what is unset.
NetworkOptions with_environment(NetworkOptions network);

// `options` has its settings from the environment already. `met_by`: the network interfaces by
// which this rank has met the others, which is used if `options` names none; empty: not known.
// `timeout`: the communicator's.
NetworkCarrier by_ucx(const NetworkOptions& options, const std::string& met_by,
                      std::chrono::milliseconds timeout);

}  // namespace rondo::detail
