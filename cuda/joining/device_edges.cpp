#include "cuda/joining/device_edges.hpp"

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/index.hpp"
#include "base/log.hpp"
#include "joining/edges.hpp"

namespace rondo::detail::gpu {

std::vector<Edge> device_edges(const GroupFacts& group, const std::vector<ScheduleEdge>& edges,
                               const std::vector<std::vector<DeviceLink>>& links,
                               const Reach& reach) {
  const std::vector<RankPlace> places = group.places();
  std::vector<Edge> settled;
  for (const ScheduleEdge& edge : edges) {
    const auto [from, to] = edge.ranks;
    const bool there = reach.way(from, to).works;
    Edge result{from, to, Carrier::mpi, {}, edge.in_ring()};
    if (!group.hosts().same(from, to)) {
      result.reason = reason_for_network(places, from, to);
    } else if (there && reach.way(to, from).works) {
      const bool one_process = group.same_process(from, to);
      result.carrier = one_process ? Carrier::p2p : Carrier::ipc;
      result.reason = fmt::format("{}, {}", name(links[Index(from)][Index(to)]),
                                  one_process ? "one process" : "two processes");
    } else {
      const int one = there ? to : from;
      const int other = there ? from : to;
      result.carrier = Carrier::pinned;
      result.reason = fmt::format("rank {} towards rank {}: {}", one, other,
                                  reach.way(one, other).reason.data());
    }
    settled.push_back(std::move(result));
  }
  return settled;
}

std::string objection_to_reach(const Reach& reach) {
  const auto size = static_cast<int>(reach.ways.size());
  for (int from = 0; from < size; ++from) {
    for (int to = 0; to < size; ++to) {
      if (reach.way(from, to).works) continue;
      return fmt::format("rank {} does not reach rank {}: {}", from, to,
                         reach.way(from, to).reason.data());
    }
  }
  return {};
}

bool fall_back_to_mpi(std::vector<Edge>& edges, const SharedMemory& shared) {
  const auto mapped = [&](int rank) { return shared.mapped[Index(rank)]; };
  bool any = false;
  for (Edge& edge : edges) {
    if (edge.carrier == Carrier::mpi || (mapped(edge.from) && mapped(edge.to))) continue;
    edge.carrier = Carrier::mpi;
    edge.reason = reason_for_no_memory(shared, edge.from, edge.to);
    any = true;
  }
  return any;
}

void refuse_fallbacks(const std::vector<ScheduleEdge>& edges, const std::vector<Edge>& settled,
                      const std::string& one_shot_lost, const GroupFacts& group,
                      cuda::PeerAccess peer_access, int rank) {
  const bool required = peer_access == cuda::PeerAccess::required;
  std::vector<const Edge*> slow;  // which only messages and exchanges use
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const Edge& edge = settled[i];
    const bool fallback = edge.carrier == Carrier::pinned ||
                          (edge.carrier == Carrier::mpi && group.hosts().same(edge.from, edge.to));
    if (required && fallback) {
      throw TransportError(
          fmt::format("PeerAccess::required refuses {} from rank {} to rank {}: {}; choose "
                      "PeerAccess::automatic "
                      "to allow it",
                      edge.carrier == Carrier::pinned ? "pinned host memory" : "MPI", edge.from,
                      edge.to, edge.reason));
    }
    if (edge.from != rank) continue;
    const bool unwanted = fallback && peer_access == cuda::PeerAccess::automatic;
    if (is_pairwise(edges[i])) {
      if (unwanted) slow.push_back(&edge);
      continue;
    }
    log(unwanted ? LogLevel::warning : LogLevel::info, "rank {} of {} on {}: to rank {} by {} ({})",
        rank, group.size(), group.device_of(rank), edge.to, name(edge.carrier), edge.reason);
  }
  if (!slow.empty()) {
    std::string to;
    for (const Edge* edge : slow) to += fmt::format("{}{}", to.empty() ? "" : ", ", edge->to);
    log(LogLevel::warning, "rank {}: messages to ranks {} go through host memory: {}", rank, to,
        slow.front()->reason);
  }
  if (one_shot_lost.empty() || peer_access == cuda::PeerAccess::avoided) return;
  if (required) {
    throw TransportError(fmt::format("PeerAccess::required, but {}", one_shot_lost));
  }
  if (rank == 0) {
    log(LogLevel::warning, "calls go without one_shot and direct: {}", one_shot_lost);
  }
}

}  // namespace rondo::detail::gpu
