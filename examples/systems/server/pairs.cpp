#include "pairs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

namespace lenet::systems {

Roles roles_of(int ranks, int servers) {
  if (servers >= ranks) {
    throw std::runtime_error(
        fmt::format("--servers {} of {} ranks leaves no rank that trains", servers, ranks));
  }
  return {ranks - servers, servers};
}

// In round r, worker w and server (w + r) mod the number of rounds make a pair: so each rank is in
// at most one pair of a round. With 3 workers and 2 servers:
//
//   round   worker 0   worker 1   worker 2
//     0     server 0   server 1   -
//     1     server 1   -          server 0
//     2     -          server 0   server 1
std::vector<rondo::Communicator> pair_up(rondo::Communicator& comm, const Roles& roles) {
  const int rounds = std::max(roles.workers, roles.servers);
  const bool serves = roles.is_server(comm.rank());
  const int mine = serves ? comm.rank() - roles.workers : comm.rank();
  const int others = serves ? roles.workers : roles.servers;
  std::vector<std::optional<rondo::Communicator>> by_other(static_cast<std::size_t>(others));
  for (int round = 0; round < rounds; ++round) {
    const int other = serves ? (mine - round + rounds) % rounds : (mine + round) % rounds;
    const bool paired = other < others;
    const int server = serves ? mine : other;
    auto pair =
        comm.split(paired ? std::optional(server) : std::nullopt, serves ? kServer : kWorker);
    if (paired) by_other[static_cast<std::size_t>(other)] = std::move(pair);
  }
  std::vector<rondo::Communicator> pairs;
  pairs.reserve(by_other.size());
  for (std::optional<rondo::Communicator>& pair : by_other) pairs.push_back(std::move(*pair));
  return pairs;
}

}  // namespace lenet::systems
