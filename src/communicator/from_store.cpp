#include "communicator/from_store.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <variant>
#include <vector>

#include <rondo/errors.hpp>
#include <rondo/start.hpp>

#include "base/log.hpp"
#include "base/put.hpp"
#include "bootstrap/file_meeting_point.hpp"
#include "bootstrap/socket_bootstrap.hpp"
#include "bootstrap/sockets.hpp"
#include "bootstrap/tcp_meeting_point.hpp"
#include "bootstrap/unix_meeting_point.hpp"
#include "carrier/host_watch.hpp"
#include "communicator/by_ucx.hpp"
#include "communicator/join.hpp"
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

// What both ends of a connection say when they have joined: whether they have another connection already.
enum class Connected : std::uint32_t { not_yet = 0x6e6f7420, already = 0x79657320 };

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

// Without a watch a host that vanishes is noticed at the deadline.
void warn(const TransportError& error) {
  log(LogLevel::warning, "from_store: hosts that vanish are noticed at deadlines only: {}",
      error.what());
}

Connected find_link(HostWatch& hosts, int rank) {
  try {
    return hosts.find_link(rank) ? Connected::already : Connected::not_yet;
  } catch (const TransportError& error) {
    warn(error);
    return Connected::not_yet;
  }
}

// Keeps connections by which ranks have joined, so that a host that vanishes is noticed. Two processes need one for all their
// communicators. `sockets`: by rank. A connection that is lost meanwhile is not kept; calls tell what became of that rank.
void watch_hosts(HostWatch& hosts, std::vector<FileDescriptor> sockets,
                 Clock::time_point deadline) {
  std::vector<Connected> mine(sockets.size());
  for (std::size_t rank = 0; rank < sockets.size(); ++rank) {
    if (!sockets[rank].valid()) continue;
    mine[rank] = find_link(hosts, static_cast<int>(rank));
    static_cast<void>(send_all(sockets[rank], &mine[rank], sizeof(mine[rank]), deadline));
  }
  for (std::size_t rank = 0; rank < sockets.size(); ++rank) {
    Connected theirs{};
    if (!sockets[rank].valid()) continue;
    const Moved heard = receive_all(sockets[rank], &theirs, sizeof(theirs), deadline);
    const bool known = theirs == Connected::not_yet || theirs == Connected::already;
    if (heard.end != Moved::End::done || !known) continue;
    if (mine[rank] == Connected::already && theirs == Connected::already) continue;
    try {
      hosts.add_link(static_cast<int>(rank), std::move(sockets[rank]));
    } catch (const TransportError& error) {
      warn(error);
    }
  }
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
  Network network =
      by_ucx(complete.network, interface_of_meeting(bootstrap), joining.defaults.timeout);
  network.hosts = std::make_shared<HostWatch>(bootstrap.exchange(name_of_this_process()));
  network.watched_as.resize(static_cast<std::size_t>(launched.size));
  std::iota(network.watched_as.begin(), network.watched_as.end(), 0);
  const std::chrono::milliseconds patience = joining.defaults.timeout;
  auto state = join(bootstrap, complete, std::move(joining), network);
  if (state->engine.ranks_sharing().size() < static_cast<std::size_t>(launched.size)) {
    watch_hosts(*network.hosts, bootstrap.release(), deadline_after(patience));
  }
  return Communicator(std::move(state));
}

}  // namespace detail

Communicator from_store(const std::string& url, int rank, int size,
                        const CommunicatorOptions& options) {
  return detail::join_at_store({{}, rank, size, url, {}, {}}, options);
}

}  // namespace rondo
