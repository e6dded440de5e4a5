#include "communicator/from_store.hpp"

#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include <rondo/errors.hpp>
#include <rondo/start.hpp>

#include "base/giving_up.hpp"
#include "bootstrap/meeting_point.hpp"
#include "bootstrap/release.hpp"
#include "bootstrap/socket_bootstrap.hpp"
#include "communicator/join.hpp"
#include "joining/by_ucx.hpp"
#include "joining/watch_hosts.hpp"

namespace rondo {
namespace detail {
namespace {

MeetingPoint meet_at(const LaunchedRank& launched, const NetworkOptions& network) {
  const auto parsed = parse_store_url(launched.url);
  if (const auto* socket = std::get_if<UnixUrl>(&parsed)) {
    return meet_at_path(socket->path, launched.run);
  }
  if (const auto* file = std::get_if<FileUrl>(&parsed)) {
    return meet_in_folder(file->folder, launched.run, network);
  }
  return meet_at_address(std::get<TcpUrl>(parsed), launched.ports, launched.run, network);
}

Communicator join_now(const LaunchedRank& launched, const CommunicatorOptions& options) {
  Joining joining = prepare_to_join(options, launched.rank);
  CommunicatorOptions complete = options;
  complete.network = with_environment(options.network);
  if (options.carrier == CarrierChoice::mpi) {
    joining.refusal = "from_store: ranks that meet at a store are joined without MPI";
  }
  SocketBootstrap bootstrap(meet_at(launched, complete.network), launched.rank, launched.size,
                            joining.defaults.timeout);
  require_one_release(bootstrap);
  NetworkCarrier network =
      by_ucx(complete.network, interfaces_of_meeting(bootstrap, bootstrap.interfaces()),
             joining.defaults.timeout);
  make_watch(network, bootstrap);
  const std::chrono::milliseconds patience = joining.defaults.timeout;
  auto state = join(bootstrap, complete, std::move(joining), network);
  if (state->wiring.links.ranks_sharing.size() < static_cast<std::size_t>(launched.size)) {
    add_links(*network.hosts, "from_store", bootstrap.release(), deadline_after(patience));
  }
  return Communicator(std::move(state));
}

}  // namespace

Communicator join_at_store(const LaunchedRank& launched, const CommunicatorOptions& options) {
  return unless_given_up(options.give_up_if, [&] { return join_now(launched, options); });
}

}  // namespace detail

Communicator from_store(const std::string& url, int rank, int size,
                        const CommunicatorOptions& options) {
  return detail::join_at_store({{}, rank, size, url, {}, {}}, options);
}

}  // namespace rondo
