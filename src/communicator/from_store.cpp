#include <memory>
#include <numeric>
#include <utility>
#include <variant>
#include <vector>

#include <rondo/errors.hpp>
#include <rondo/start.hpp>

#include "bootstrap/file_meeting_point.hpp"
#include "bootstrap/socket_bootstrap.hpp"
#include "bootstrap/tcp_meeting_point.hpp"
#include "bootstrap/unix_meeting_point.hpp"
#include "communicator/by_ucx.hpp"
#include "communicator/join.hpp"

namespace rondo {
namespace detail {
namespace {

std::unique_ptr<MeetingPoint> meet_at(const std::string& url, const NetworkOptions& network) {
  const auto parsed = parse_store_url(url);
  if (const auto* socket = std::get_if<UnixUrl>(&parsed)) return meet_at_path(socket->path);
  if (const auto* file = std::get_if<FileUrl>(&parsed))
    return meet_in_folder(file->folder, network);
  return meet_at_address(std::get<TcpUrl>(parsed), network);
}

// The connections to ranks that do not share this rank's memory, by rank.
std::vector<FileDescriptor> sockets_to_other_hosts(SocketBootstrap& bootstrap,
                                                   const Engine& engine) {
  std::vector<FileDescriptor> sockets = bootstrap.release();
  for (const int near : engine.ranks_sharing()) {
    const auto index = static_cast<std::size_t>(near);
    if (index < sockets.size()) sockets[index] = FileDescriptor();
  }
  return sockets;
}

}  // namespace
}  // namespace detail

Communicator from_store(const std::string& url, int rank, int size,
                        const CommunicatorOptions& options) {
  detail::Joining joining = detail::prepare_to_join(options, rank);
  CommunicatorOptions complete = options;
  complete.network = detail::with_environment(options.network);
  if (options.carrier == CarrierChoice::mpi) {
    joining.refusal = "from_store: ranks that meet at a store are joined without MPI";
  }
  detail::SocketBootstrap bootstrap(detail::meet_at(url, complete.network), rank, size,
                                    joining.defaults.timeout);
  detail::Network network = detail::by_ucx(complete.network, joining.defaults.timeout);
  network.hosts = std::make_shared<detail::HostWatch>();
  network.watched_as.resize(static_cast<std::size_t>(size));
  std::iota(network.watched_as.begin(), network.watched_as.end(), 0);
  auto state = detail::join(bootstrap, complete, std::move(joining), network);
  network.hosts->watch(detail::sockets_to_other_hosts(bootstrap, state->engine));
  return Communicator(std::move(state));
}

}  // namespace rondo
