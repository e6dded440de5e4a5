#include "joining/edges.hpp"

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/index.hpp"
#include "base/log.hpp"

namespace rondo::detail {

bool have_same_memory(const Hosts& hosts, const SharedMemory& shared, int a, int b) {
  return hosts.same(a, b) && shared.mapped[Index(a)] && shared.mapped[Index(b)];
}

std::vector<int> ranks_sharing(const Hosts& hosts, const SharedMemory& shared, int rank) {
  std::vector<int> ranks;
  for (int other = 0; other < hosts.size(); ++other) {
    if (other == rank || have_same_memory(hosts, shared, other, rank)) ranks.push_back(other);
  }
  return ranks;
}

std::string reason_for_network(const std::vector<RankPlace>& places, int from, int to) {
  return fmt::format("hosts {} and {}", places[Index(from)].host, places[Index(to)].host);
}

std::string reason_for_no_memory(const SharedMemory& shared, int from, int to) {
  const int culprit = shared.mapped[Index(from)] ? to : from;
  return fmt::format("one host, but rank {} {}", culprit, shared.reasons[Index(culprit)]);
}

namespace {

// Whether the network carries all edges, also those within a host.
bool is_forced(CarrierChoice choice) {
  return choice == CarrierChoice::mpi || choice == CarrierChoice::ucx;
}

}  // namespace

Edge edge_of(const ScheduleEdge& edge, const CarrierFacts& facts) {
  const auto [from, to] = edge.ranks;
  Edge result{from, to, facts.network, {}, edge.in_ring()};
  if (is_forced(facts.choice)) {
    result.reason = fmt::format("CarrierChoice::{}", name(facts.network));
  } else if (!facts.hosts->same(from, to)) {
    result.reason = reason_for_network(*facts.places, from, to);
  } else if (!have_same_memory(*facts.hosts, *facts.shared, from, to)) {
    result.reason = reason_for_no_memory(*facts.shared, from, to);
  } else {
    result.carrier = Carrier::shm;
    result.reason = fmt::format("host {}", (*facts.places)[Index(from)].host);
  }
  return result;
}

std::vector<Edge> settle_edges(const std::vector<ScheduleEdge>& edges, const CarrierFacts& facts,
                               int rank) {
  std::vector<Edge> settled;
  for (const ScheduleEdge& one : edges) {
    const Edge& edge = settled.emplace_back(edge_of(one, facts));
    const bool by_network = edge.carrier == facts.network;
    if (by_network && facts.choice == CarrierChoice::shm) {
      throw TransportError(
          fmt::format("ranks {} and {} cannot share memory, which is to carry what goes from one "
                      "to the other: {}. Messages may carry it where the communicator is made by "
                      "from_mpi or from_store with CarrierChoice::automatic",
                      edge.from, edge.to, edge.reason));
    }
    if (edge.from != rank) continue;
    const bool lost =
        by_network && !is_forced(facts.choice) && facts.hosts->same(edge.from, edge.to);
    if (lost) {
      log(LogLevel::warning, "rank {}: falls back to {} towards rank {}: {}", rank,
          name(edge.carrier), edge.to, edge.reason);
    }
    log(LogLevel::info, "rank {} of {}: to rank {} by {} ({})", rank, facts.hosts->size(), edge.to,
        name(edge.carrier), edge.reason);
  }
  return settled;
}

}  // namespace rondo::detail
