// Who is a worker and who a parameter server, and the communicators between them.
#pragma once

#include <rondo/communicator.hpp>
#include <vector>

namespace lenet::systems {

// The last ranks are servers, the others workers.
struct Roles {
  int workers = 1;
  int servers = 0;

  [[nodiscard]] bool is_server(int rank) const { return rank >= workers; }
};

// Throws std::runtime_error if no worker would be left.
Roles roles_of(int ranks, int servers);

// In the communicator of a worker and a server.
inline constexpr int kWorker = 0;
inline constexpr int kServer = 1;

// Collective. On a worker: one communicator for each server, in their order; on a server: one for
// each worker.
std::vector<rondo::Communicator> pair_up(rondo::Communicator& comm, const Roles& roles);

}  // namespace lenet::systems
