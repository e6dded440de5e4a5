#include "communicator/from_store.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include <rondo/errors.hpp>
#include <rondo/start.hpp>

#include "base/log.hpp"
#include "base/put.hpp"
#include "bootstrap/file_meeting_point.hpp"
#include "bootstrap/release.hpp"
#include "bootstrap/socket_bootstrap.hpp"
#include "bootstrap/sockets.hpp"
#include "bootstrap/tcp_meeting_point.hpp"
#include "bootstrap/unix_meeting_point.hpp"
#include "communicator/by_ucx.hpp"
#include "communicator/join.hpp"
#include "communicator/watch_hosts.hpp"
#include "topology/machine.hpp"

namespace rondo {
namespace detail {
namespace {

std::unique_ptr<MeetingPoint> meet_at(const LaunchedRank& launched, const NetworkOptions& network) {
  const auto parsed = parse_store_url(launched.url);
  if (const auto* socket = std::get_if<UnixUrl>(&parsed)) return meet_at_path(socket->path);
  if (const auto* file = std::get_if<FileUrl>(&parsed))
    return meet_in_folder(file->folder, network);
  return meet_at_address(std::get<TcpUrl>(parsed), launched.ports, launched.run, network);
}

// The network interface by which ranks have met; empty if that is not known. A rank that has met rank 0 without a network, since it
// is on the same host, takes rank 0's. Collective.
std::string interface_of_meeting(SocketBootstrap& bootstrap) {
  struct Met {
    std::array<char, 64> interface{};
    std::array<char, 64> boot{};
  };
  Met mine;
  put(mine.interface, bootstrap.interface());
  put(mine.boot, machine_boot_id());
  const std::vector<Met> all = bootstrap.exchange(mine);
  const bool is_beside_first = mine.boot == all[0].boot && mine.interface[0] == '\0';
  return is_beside_first ? all[0].interface.data() : mine.interface.data();
}

}  // namespace

Communicator join_at_store(const LaunchedRank& launched, const CommunicatorOptions& options) {
  Joining joining = prepare_to_join(options, launched.rank);
  CommunicatorOptions complete = options;
  complete.network = with_environment(options.network);
  if (options.carrier == CarrierChoice::mpi) {
    joining.refusal = "from_store: ranks that meet at a store are joined without MPI";
  }
  SocketBootstrap bootstrap(meet_at(launched, complete.network), launched.rank, launched.size,
                            joining.defaults.timeout);
  require_one_release(bootstrap);
  Network network =
      by_ucx(complete.network, interface_of_meeting(bootstrap), joining.defaults.timeout);
  make_watch(network, bootstrap);
  const std::chrono::milliseconds patience = joining.defaults.timeout;
  auto state = join(bootstrap, complete, std::move(joining), network);
  if (state->engine.ranks_sharing().size() < static_cast<std::size_t>(launched.size)) {
    add_links(*network.hosts, "from_store", bootstrap.release(), deadline_after(patience));
  }
  return Communicator(std::move(state));
}

}  // namespace detail

Communicator from_store(const std::string& url, int rank, int size,
                        const CommunicatorOptions& options) {
  return detail::join_at_store({{}, rank, size, url, {}, {}}, options);
}

}  // namespace rondo
