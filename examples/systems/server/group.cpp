#include "group.hpp"

#include <array>
#include <utility>
#include <vector>

#include "pairs.hpp"
#include "serve.hpp"

namespace lenet::systems {
namespace {

Staleness sum_over(rondo::Communicator& comm, Staleness mine) {
  comm.all_reduce(mine.updates);
  std::array<std::uint64_t, 1> one = {mine.sum};
  comm.all_reduce(one);
  mine.sum = one[0];
  one = {mine.greatest};
  comm.all_reduce(one, rondo::ReduceOp::max);
  mine.greatest = one[0];
  return mine;
}

}  // namespace

Staleness train_with_servers(
    rondo::Communicator& comm, const ServerOptions& options,
    const std::function<void(rondo::Communicator& workers, ServerClient& client)>& train) {
  const Roles roles = roles_of(comm.size(), options.servers);
  std::vector<rondo::Communicator> pairs = pair_up(comm, roles);
  const bool serves = roles.is_server(comm.rank());
  std::optional<rondo::Communicator> workers =
      comm.split(serves ? std::nullopt : std::optional(0), comm.rank());
  Staleness counted;
  if (serves) {
    const auto server = static_cast<std::size_t>(comm.rank() - roles.workers);
    Shard shard(shard_of(options.elements, static_cast<std::size_t>(roles.servers), server).count,
                {roles.workers, options.synchronous, options.most_staleness});
    serve(std::move(pairs), shard);
    counted = shard.staleness();
  } else {
    ServerClient client(std::move(pairs), static_cast<std::size_t>(comm.rank()),
                        options.most_staleness.has_value());
    train(*workers, client);
  }
  return sum_over(comm, counted);
}

}  // namespace lenet::systems
