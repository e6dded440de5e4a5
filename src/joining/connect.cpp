#include "joining/connect.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/index.hpp"
#include "base/log.hpp"

namespace rondo::detail {

std::vector<std::size_t> positions_of(const std::vector<int>& ring) {
  std::vector<std::size_t> positions(ring.size());
  for (std::size_t i = 0; i < ring.size(); ++i) positions[Index(ring[i])] = i;
  return positions;
}

Wiring empty_wiring(int rank, int size, std::vector<int> ring) {
  Wiring wiring;
  wiring.rank = rank;
  wiring.size = size;
  wiring.topology.ring = std::move(ring);
  wiring.links.to.resize(static_cast<std::size_t>(size));
  wiring.links.from.resize(static_cast<std::size_t>(size));
  wiring.links.bells.resize(static_cast<std::size_t>(size));
  for (Links::PairwiseEnds& ends : wiring.links.pairwise) {
    ends.to.resize(static_cast<std::size_t>(size));
    ends.from.resize(static_cast<std::size_t>(size));
  }
  wiring.links.positions = positions_of(wiring.topology.ring);
  wiring.offers = basic_offers(size);
  return wiring;
}

void set_pairwise_geometries(Wiring& wiring, const ByPairwiseUse<FifoGeometry>& geometries) {
  for (int use = 0; use < kPairwiseUses; ++use) {
    wiring.links.pairwise[Index(use)].geometry = geometries[Index(use)];
  }
}

void connect_segment(Wiring& wiring, const std::vector<SegmentEdge>& edges) {
  const auto position = positions_of(wiring.topology.ring);
  for (const int rank : wiring.links.ranks_sharing) {
    if (rank == wiring.rank) continue;
    wiring.links.bells[position[Index(rank)]] = &wiring.links.segment->bell(rank);
  }
  const HostSegment& segment = *wiring.links.segment;
  wiring.links.used_parts.push_back({{Algorithm::one_shot}, segment.outboxes()});
  for (const SegmentEdge& one : edges) {
    const RankPair& edge = one.ranks;
    const auto fifo = segment.fifo(edge);
    if (!fifo || (edge.from != wiring.rank && edge.to != wiring.rank)) continue;
    wiring.links.used_parts.push_back({one.algorithms, segment.slots_of(edge)});
    if (edge.from == wiring.rank) {
      wiring.links.to[position[Index(edge.to)]] = SendEnd(*fifo);
    } else {
      wiring.links.from[position[Index(edge.from)]] = RecvEnd(*fifo);
    }
  }
}

void connect_to_pump(Wiring& wiring, PumpEdges& carried, const Edge& edge,
                     const ScheduleEdge& users, const FifoGeometry& geometry) {
  const auto position = positions_of(wiring.topology.ring);
  carried.fifos.push_back(map_private(contiguous_fifo_bytes(geometry)));
  const FifoMemory fifo = contiguous_fifo(carried.fifos.back().data(), geometry);
  if (edge.from == wiring.rank) {
    wiring.links.to[position[Index(edge.to)]] = SendEnd(fifo);
    carried.out.push_back({edge.to, users.algorithms, 0, RecvEnd(fifo), users.between_hosts});
  } else {
    wiring.links.from[position[Index(edge.from)]] = RecvEnd(fifo);
    carried.in.push_back({edge.from, users.algorithms, 0, SendEnd(fifo), users.between_hosts});
  }
}

std::vector<int> ranks_elsewhere(int size, const std::vector<int>& ranks_sharing) {
  std::vector<int> elsewhere;
  for (int rank = 0; rank < size; ++rank) {
    if (std::find(ranks_sharing.begin(), ranks_sharing.end(), rank) == ranks_sharing.end()) {
      elsewhere.push_back(rank);
    }
  }
  return elsewhere;
}

namespace {

// Returns why the process of a rank cannot be watched; empty if it is watched from now on.
std::string watch(PeerWatch& peers, int rank, const RankFacts& peer, const RankFacts& me) {
  const bool one_namespace = peer.process_namespace == me.process_namespace;
  const int error =
      peers.watch(rank, one_namespace ? static_cast<int>(peer.process_id) : 0, peer.life);
  if (error == 0) return {};
  if (!one_namespace) {
    return fmt::format(
        "cannot watch the process of rank {}, which has process ids of its own (another container)",
        rank);
  }
  const bool no_files = error == EMFILE || error == ENFILE;
  return fmt::format("cannot watch process {} of rank {}: {}{}", peer.process_id, rank,
                     std::strerror(error), no_files ? "; allow more open files (ulimit -n)" : "");
}

}  // namespace

void watch_peers(Wiring& wiring, const std::vector<RankFacts>& facts) {
  for (const int rank : wiring.links.ranks_sharing) {
    if (rank == wiring.rank) continue;
    const std::string objection =
        watch(wiring.waiting.peers, rank, facts[Index(rank)], facts[Index(wiring.rank)]);
    if (objection.empty()) continue;
    log(LogLevel::warning, "rank {}: {}. If it is killed, calls end at their deadline", wiring.rank,
        objection);
    wiring.waiting.unwatched +=
        fmt::format(" This rank {}; if that process ended, only a deadline shows it.", objection);
  }
}

}  // namespace rondo::detail
