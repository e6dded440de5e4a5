#include "joining/watch_hosts.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>

#include <rondo/errors.hpp>

#include "base/log.hpp"
#include "base/put.hpp"
#include "bootstrap/meeting_point.hpp"
#include "bootstrap/proof.hpp"
#include "bootstrap/socket_bootstrap.hpp"
#include "bootstrap/sockets.hpp"
#include "net/host_watch.hpp"
#include "topology/machine.hpp"

namespace rondo::detail {
namespace {

// What both ends of a connection say when they have joined: whether they have another connection
// already, or can keep none.
enum class Connected : std::uint32_t {
  not_yet = 0x6e6f7420,
  already = 0x79657320,
  never = 0x6e657620
};

// Ranks try so long to connect for the watch alone.
constexpr std::chrono::seconds kForTheWatch{3};

void warn(const std::string& caller, const char* reason) {
  log(LogLevel::warning,
      "{}: processes on other hosts that end, and hosts that vanish, may be noticed at deadlines "
      "only: {}",
      caller, reason);
}

Connected find_link(HostWatch& hosts, const std::string& caller, int rank) {
  try {
    return hosts.find_link(rank) ? Connected::already : Connected::not_yet;
  } catch (const TransportError& error) {
    warn(caller, error.what());
    return Connected::never;
  }
}

}  // namespace

void make_watch(NetworkCarrier& network, Bootstrap& bootstrap) {
  network.hosts = std::make_shared<HostWatch>(bootstrap.exchange(name_of_this_process()));
  network.watched_as.resize(static_cast<std::size_t>(bootstrap.size()));
  std::iota(network.watched_as.begin(), network.watched_as.end(), 0);
}

void add_links(HostWatch& hosts, const std::string& caller, std::vector<FileDescriptor> sockets,
               Clock::time_point deadline) {
  std::vector<Connected> mine(sockets.size());
  for (std::size_t rank = 0; rank < sockets.size(); ++rank) {
    if (!sockets[rank].valid()) continue;
    mine[rank] = find_link(hosts, caller, static_cast<int>(rank));
    static_cast<void>(send_all(sockets[rank], &mine[rank], sizeof(mine[rank]), deadline));
  }
  for (std::size_t rank = 0; rank < sockets.size(); ++rank) {
    Connected theirs{};
    if (!sockets[rank].valid()) continue;
    const Moved received = receive_all(sockets[rank], &theirs, sizeof(theirs), deadline);
    if (received.end != Moved::End::done) {
      // The other process may come later, and keep the connection.
      say_that_this_process_leaves(sockets[rank]);
      continue;
    }
    const bool known = theirs == Connected::not_yet || theirs == Connected::already;
    if (!known || mine[rank] == Connected::never) continue;
    if (mine[rank] == Connected::already && theirs == Connected::already) continue;
    try {
      hosts.add_link(static_cast<int>(rank), std::move(sockets[rank]));
    } catch (const TransportError& error) {
      warn(caller, error.what());
    }
  }
}

std::string interfaces_of_meeting(Bootstrap& bootstrap, const std::string& met_by) {
  struct Met {
    std::array<char, 256> interfaces{};
    std::uint64_t host = 0;
  };
  Met mine;
  put(mine.interfaces, met_by);
  mine.host = this_host_id();
  const std::vector<Met> all = bootstrap.exchange(mine);
  const bool is_beside_first = mine.host == all[0].host && mine.interfaces[0] == '\0';
  return is_beside_first ? all[0].interfaces.data() : mine.interfaces.data();
}

ToWatch connections_to_watch(Bootstrap& bootstrap, const std::string& interface) {
  // If the ranks could not connect once, the next communicator does not wait for that again.
  // Written and read by threads of this process that join at the same time; it orders nothing else.
  static std::atomic<bool> has_failed = false;
  struct CanWatch {
    std::uint64_t host = 0;
    bool can_prove = false;
    bool has_failed = false;
  };
  const std::vector<CanWatch> places =
      bootstrap.exchange(CanWatch{this_host_id(), can_prove(), has_failed.load()});
  const auto all = [&](auto&& is) { return std::all_of(places.begin(), places.end(), is); };
  if (all([&](const CanWatch& one) { return one.host == places[0].host; })) return {};
  if (!all([](const CanWatch& one) { return one.can_prove; })) {
    warn("from_mpi", "built without libsodium");
    return {};
  }
  if (!all([](const CanWatch& one) { return !one.has_failed; })) return {};
  ToWatch made;
  try {
    SocketBootstrap meeting(meet_where_told(bootstrap, interface), bootstrap.rank(),
                            bootstrap.size(), kForTheWatch);
    made.interfaces = meeting.interfaces();
    made.connections = meeting.release();
  } catch (const Error& error) {
    has_failed = true;
    warn("from_mpi", error.what());
  }
  made.interfaces = interfaces_of_meeting(bootstrap, made.interfaces);
  return made;
}

}  // namespace rondo::detail
