#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/log.hpp"
#include "carrier/memory.hpp"
#include "communicator/wiring.hpp"
#include "communicator/wiring_parts.hpp"

namespace rondo::detail {
namespace {

struct SegmentOffer {  // from the lowest rank of each host
  bool made = false;
  std::array<char, 64> name{};
  std::array<char, 512> error{};
};

struct SegmentAnswer {  // from every rank
  bool mapped = false;
  std::array<char, 256> error{};
};

void require_usable_options(const std::vector<RankFacts>& facts) {
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    if (facts[rank].refusal[0] == '\0') continue;
    throw UsageError(fmt::format("rank {}: {}", rank, facts[rank].refusal.data()));
  }
  for (std::size_t rank = 1; rank < facts.size(); ++rank) {
    const RankFacts& a = facts[0];
    const RankFacts& b = facts[rank];
    if (a.slot_bytes == b.slot_bytes && a.slots == b.slots && a.carrier == b.carrier) continue;
    throw UsageError(fmt::format(
        "rank 0 and rank {} were given different CommunicatorOptions: slot_bytes {} and {}, slots "
        "{} and {}, carrier {} and {}; they must be the same on all ranks",
        rank, a.slot_bytes, b.slot_bytes, a.slots, b.slots, static_cast<int>(a.carrier),
        static_cast<int>(b.carrier)));
  }
}

// The wiring of one process, step by step; every step that exchanges is made by all ranks.
class ProcessWirer {
 public:
  ProcessWirer(Bootstrap& bootstrap, const CommunicatorOptions& options)
      : bootstrap_(bootstrap), options_(options), rank_(bootstrap.rank()) {}

  Wiring wire(const std::string& refusal, const PumpFactory& make_pump) {
    gather_facts(refusal);
    share_segment();
    Wiring wiring = empty_wiring(rank_, bootstrap_.size(), geometry_, ring_);
    wiring.topology.places = places_of(facts_);
    describe_edges(wiring.topology);
    wiring.segment = segment_;
    connect_segment(wiring, local_edges_);
    connect_pump(wiring, make_pump);
    watch_peers(wiring);
    wiring.crowded = crowded(ranks_here_.size());
    return wiring;
  }

 private:
  void gather_facts(const std::string& refusal) {
    RankFacts mine = my_facts(options_);
    put(mine.refusal, refusal);
    facts_ = bootstrap_.exchange(mine);
    require_usable_options(facts_);
    keys_ = order_keys(facts_);
    ring_ = ring_order(keys_);
    edges_ = schedule_edges(ring_);
    for (int rank = 0; rank < bootstrap_.size(); ++rank) {
      if (same_host(rank, rank_)) ranks_here_.push_back(rank);
    }
    bool any_mpi = options_.carrier == CarrierChoice::mpi;
    for (int rank = 0; rank < bootstrap_.size(); ++rank) any_mpi |= !same_host(rank, 0);
    geometry_ = choose_geometry(options_, any_mpi);
    if (options_.carrier == CarrierChoice::mpi) return;
    for (const RankPair& edge : edges_) {
      if (same_host(edge.from, rank_) && same_host(edge.to, rank_)) local_edges_.push_back(edge);
    }
  }

  [[nodiscard]] bool same_host(int a, int b) const {
    return keys_[static_cast<std::size_t>(a)].host == keys_[static_cast<std::size_t>(b)].host;
  }
  [[nodiscard]] int leader_of(int rank) const {
    int leader = 0;
    while (!same_host(leader, rank)) ++leader;
    return leader;
  }

  // One segment a host, made by its lowest rank, unlinked as soon as all have mapped it or failed
  // to.
  void share_segment() {
    const std::size_t bytes = HostSegment::bytes_for(local_edges_.size(), geometry_);
    Mapping mapping;
    SegmentOffer offer;
    if (leader_of(rank_) == rank_) {
      try {
        NamedMapping created = create_shared(bytes);
        mapping = std::move(created.mapping);
        put(offer.name, created.name);
        offer.made = true;
      } catch (const TransportError& error) {
        put(offer.error, error.what());
      }
    }
    answers_ = answer_offers(bootstrap_.exchange(offer), mapping, bytes, offer);
    if (mapping.data() == nullptr) {  // not shared: an abort board of my own, and no FIFOs
      local_edges_.clear();
      mapping = map_private(HostSegment::bytes_for(0, geometry_));
    }
    segment_ = std::make_shared<HostSegment>(std::move(mapping), local_edges_, geometry_);
  }

  std::vector<SegmentAnswer> answer_offers(const std::vector<SegmentOffer>& offers,
                                           Mapping& mapping, std::size_t bytes,
                                           const SegmentOffer& mine) {
    const SegmentOffer& offer = offers[static_cast<std::size_t>(leader_of(rank_))];
    SegmentAnswer answer;
    try {
      if (offer.made && mapping.data() == nullptr) mapping = open_shared(offer.name.data(), bytes);
      answer.mapped = offer.made;
    } catch (const TransportError& error) {
      put(answer.error, error.what());
    }
    std::vector<SegmentAnswer> answers = bootstrap_.exchange(answer);
    if (mine.made) unlink_shared(mine.name.data());
    for (std::size_t rank = 0; rank < offers.size(); ++rank) {
      if (leader_of(static_cast<int>(rank)) == static_cast<int>(rank) && !offers[rank].made) {
        throw TransportError(fmt::format("rank {} on host {}: {}", rank, facts_[rank].host.data(),
                                         offers[rank].error.data()));
      }
    }
    return answers;
  }

  [[nodiscard]] bool mapped(int rank) const {
    return answers_[static_cast<std::size_t>(rank)].mapped;
  }

  void describe_edges(Topology& topology) const {
    for (std::size_t i = 0; i < edges_.size(); ++i) {
      Edge edge = described(edges_[i]);
      edge.in_ring = ring_.size() > 1 && i < ring_.size();
      if (edge.carrier == Carrier::mpi && options_.carrier == CarrierChoice::shm) {
        throw TransportError(
            fmt::format("CarrierChoice::shm refuses the edge from rank {} to rank {}: {}",
                        edge.from, edge.to, edge.reason));
      }
      topology.edges.push_back(std::move(edge));
    }
  }

  [[nodiscard]] Edge described(const RankPair& pair) const {
    Edge edge{pair.from, pair.to, Carrier::mpi, {}, false};
    if (options_.carrier == CarrierChoice::mpi) {
      edge.reason = "CarrierChoice::mpi";
    } else if (!same_host(pair.from, pair.to)) {
      edge.reason =
          fmt::format("hosts {} and {}", facts_[static_cast<std::size_t>(pair.from)].host.data(),
                      facts_[static_cast<std::size_t>(pair.to)].host.data());
    } else if (!mapped(pair.from) || !mapped(pair.to)) {
      const int culprit = mapped(pair.from) ? pair.to : pair.from;
      edge.reason = fmt::format("one host, but rank {} {}", culprit,
                                answers_[static_cast<std::size_t>(culprit)].error.data());
      if (pair.from == rank_) {
        log(LogLevel::warning, "rank {}: falls back to MPI towards rank {}: {}", rank_, pair.to,
            edge.reason);
      }
    } else {
      edge.carrier = Carrier::shm;
      edge.reason = fmt::format("host {}", facts_[static_cast<std::size_t>(pair.from)].host.data());
    }
    return edge;
  }

  // FIFOs whose other side is the pump.
  void connect_pump(Wiring& wiring, const PumpFactory& make_pump) {
    PumpEdges carried;
    const auto position = positions_of(ring_);
    for (const Edge& edge : wiring.topology.edges) {
      if (edge.carrier != Carrier::mpi || (edge.from != rank_ && edge.to != rank_)) continue;
      wiring.private_fifos.push_back(map_private(contiguous_fifo_bytes(geometry_)));
      const FifoMemory fifo = contiguous_fifo(wiring.private_fifos.back().data(), geometry_);
      if (edge.from == rank_) {
        wiring.to[position[static_cast<std::size_t>(edge.to)]] = SendEnd(fifo);
        carried.out.push_back({edge.to, RecvEnd(fifo)});
      } else {
        wiring.from[position[static_cast<std::size_t>(edge.from)]] = RecvEnd(fifo);
        carried.in.push_back({edge.from, SendEnd(fifo)});
      }
    }
    const bool any_mpi = std::any_of(wiring.topology.edges.begin(), wiring.topology.edges.end(),
                                     [](const Edge& edge) { return edge.carrier == Carrier::mpi; });
    if (!any_mpi) return;
    for (int rank = 0; rank < bootstrap_.size(); ++rank) {
      if (rank != rank_ && !(same_host(rank, rank_) && mapped(rank) && mapped(rank_))) {
        carried.ranks_elsewhere.push_back(rank);
      }
    }
    carried.board = &wiring.segment->board();
    wiring.pump = make_pump(std::move(carried));
  }

  void watch_peers(Wiring& wiring) const {
    const RankFacts& me = facts_[static_cast<std::size_t>(rank_)];
    for (const int rank : ranks_here_) {
      const RankFacts& peer = facts_[static_cast<std::size_t>(rank)];
      if (rank == rank_ || peer.process_namespace != me.process_namespace) continue;
      wiring.peers.watch(rank, static_cast<int>(peer.process_id));
    }
  }

  Bootstrap& bootstrap_;
  const CommunicatorOptions& options_;
  int rank_;
  std::vector<RankFacts> facts_;
  std::vector<Place> keys_;
  std::vector<int> ring_;
  std::vector<RankPair> edges_;
  std::vector<RankPair> local_edges_;
  std::vector<int> ranks_here_;
  FifoGeometry geometry_;
  std::vector<SegmentAnswer> answers_;
  std::shared_ptr<HostSegment> segment_;
};

}  // namespace

Wiring wire_processes(Bootstrap& bootstrap, const CommunicatorOptions& options,
                      const std::string& refusal, const PumpFactory& make_pump) {
  return ProcessWirer(bootstrap, options).wire(refusal, make_pump);
}

}  // namespace rondo::detail
