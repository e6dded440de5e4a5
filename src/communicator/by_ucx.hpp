// UCX as the network of a communicator.
#pragma once

#include <chrono>

#include <rondo/options.hpp>

#include "joining/wire.hpp"

namespace rondo::detail {

// With the settings that the environment has for what is unset.
NetworkOptions with_environment(NetworkOptions network);

// `options` has its settings from the environment already. `timeout`: the communicator's.
Network by_ucx(const NetworkOptions& options, std::chrono::milliseconds timeout);

}  // namespace rondo::detail
