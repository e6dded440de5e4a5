// A group of ranks of which some are parameter servers.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <rondo/communicator.hpp>

#include "client.hpp"
#include "shard.hpp"

namespace lenet::systems {

struct ServerOptions {
  int servers = 1;
  bool synchronous = true;
  std::optional<std::uint64_t> most_staleness = std::nullopt;
  std::size_t elements = 0;  // of the parameters
};

// Collective over `comm`. Ranks that train call `train` with the communicator of these ranks, in
// which they have the same numbers; servers serve until all have returned from it. Returns what all
// servers counted, on all ranks. Throws std::runtime_error.
Staleness train_with_servers(
    rondo::Communicator& comm, const ServerOptions& options,
    const std::function<void(rondo::Communicator& workers, ServerClient& client)>& train);

}  // namespace lenet::systems
