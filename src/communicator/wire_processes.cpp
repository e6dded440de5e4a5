#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/log.hpp"
#include "bootstrap/share_memory.hpp"
#include "bootstrap/together.hpp"
#include "carrier/memory.hpp"
#include "communicator/wiring.hpp"
#include "communicator/wiring_parts.hpp"

namespace rondo::detail {
namespace {

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

// The wiring of one process, step by step; every step that exchanges is made by all ranks, and what
// one rank cannot do becomes an error of all.
class ProcessWirer {
 public:
  ProcessWirer(Bootstrap& bootstrap, const CommunicatorOptions& options)
      : bootstrap_(bootstrap), options_(options), rank_(bootstrap.rank()) {}

  Wiring wire(const std::string& refusal, const LinkProbe& probe, const PumpFactory& make_pump) {
    gather_facts(refusal);
    choose_fifos(probe);
    share_segment();
    Topology topology = describe();
    Wiring wiring = empty_wiring(rank_, bootstrap_.size(), ring_);
    together(bootstrap_, [&] {
      wiring.topology = std::move(topology);
      connect(wiring, make_pump);
    });
    if (wiring.pump != nullptr) wiring.pump->open_connections();
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
    for (int rank = 1; rank < bootstrap_.size(); ++rank) {
      has_doubling_ |= options_.carrier == CarrierChoice::mpi || !same_host(rank, 0);
    }
    AlgorithmSet algorithms = {Algorithm::ring, Algorithm::naive};
    // Where all share memory, one_shot is faster.
    if (has_doubling_) algorithms.add(Algorithm::recursive_doubling);
    edges_ = schedule_edges(ring_, algorithms);
  }

  // The same on all ranks: that of the slowest link, if any leaves its host, and of the smallest cache.
  void choose_fifos(const LinkProbe& probe) {
    std::uint64_t cache_bytes = std::numeric_limits<std::uint64_t>::max();
    LocalEdges most;
    for (int rank = 0; rank < bootstrap_.size(); ++rank) {
      if (lowest_rank_of_host(rank) != rank) continue;
      cache_bytes = std::min(cache_bytes, cache_share_bytes(facts_of_host(rank)));
      LocalEdges local;
      for (const ScheduleEdge& edge : edges_of_host(rank)) local.count(edge);
      most = {std::max(most.ring, local.ring), std::max(most.star, local.star)};
    }
    // Without a probe there is no carrier for such links either, which describe() says.
    if (has_doubling_ && probe) slowest_link_ = measure_slowest_link(probe);
    geometries_ = choose_geometries(options_, cache_bytes, slowest_link_, most);
  }

  std::optional<LinkFacts> measure_slowest_link(const LinkProbe& probe) {
    const std::size_t size = ring_.size();
    const std::size_t mine = positions_of(ring_)[static_cast<std::size_t>(rank_)];
    const auto across = [&](std::size_t position) {
      const int rank = ring_[position % size];
      const bool memory = options_.carrier != CarrierChoice::mpi && same_host(rank, rank_);
      return rank == rank_ || memory ? kNoLink : rank;
    };
    LinkFacts facts;
    together(bootstrap_, [&] { facts = probe(across(mine + 1), across(mine + size - 1)); });
    std::optional<LinkFacts> slowest;
    for (const LinkFacts& one : bootstrap_.exchange(facts)) {
      if (one.bytes_per_us <= 0) continue;  // its next rank shares its memory
      if (!slowest) slowest = one;
      slowest->latency_us = std::max(slowest->latency_us, one.latency_us);
      slowest->bytes_per_us = std::min(slowest->bytes_per_us, one.bytes_per_us);
    }
    if (!slowest) return slowest;
    log(LogLevel::info, "rank {}: the slowest link carries {:.0f} bytes a us, in {:.0f} us", rank_,
        slowest->bytes_per_us, slowest->latency_us);
    return slowest;
  }

  [[nodiscard]] bool same_host(int a, int b) const {
    return keys_[static_cast<std::size_t>(a)].host == keys_[static_cast<std::size_t>(b)].host;
  }
  [[nodiscard]] const char* host_of(int rank) const {
    return facts_[static_cast<std::size_t>(rank)].host.data();
  }
  [[nodiscard]] int lowest_rank_of_host(int of) const {
    int lowest = 0;
    while (!same_host(lowest, of)) ++lowest;
    return lowest;
  }
  [[nodiscard]] std::vector<int> ranks_of_host(int of) const {
    std::vector<int> ranks;
    for (int rank = 0; rank < bootstrap_.size(); ++rank) {
      if (same_host(rank, of)) ranks.push_back(rank);
    }
    return ranks;
  }

  [[nodiscard]] std::vector<ScheduleEdge> edges_of_host(int of) const {
    std::vector<ScheduleEdge> edges;
    for (const ScheduleEdge& edge : edges_) {
      if (same_host(edge.ranks.from, of) && same_host(edge.ranks.to, of)) edges.push_back(edge);
    }
    return edges;
  }
  [[nodiscard]] std::vector<RankFacts> facts_of_host(int of) const {
    std::vector<RankFacts> facts;
    for (const int rank : ranks_of_host(of))
      facts.push_back(facts_[static_cast<std::size_t>(rank)]);
    return facts;
  }

  // One segment a host, made by its lowest rank and handed to the others. A host that shares nothing has an abort
  // board in each process.
  void share_segment() {
    const bool wanted = options_.carrier != CarrierChoice::mpi && ranks_of_host(rank_).size() > 1;
    const bool one_host = static_cast<int>(ranks_of_host(rank_).size()) == bootstrap_.size();
    segment_edges_ = with_geometry(edges_of_host(rank_), geometries_.memory);
    SegmentPlan plan{bootstrap_.size(), one_host ? one_shot_limit_bytes(bootstrap_.size()) : 0,
                     segment_edges_};
    shared_ = share_memory(bootstrap_, lowest_rank_of_host(rank_), wanted, plan.bytes());
    if (shared_.mapping.data() == nullptr) {
      segment_edges_.clear();
      plan = {bootstrap_.size(), 0, {}};
      shared_.mapping = map_private(plan.bytes());
    }
    segment_ = std::make_shared<HostSegment>(std::move(shared_.mapping), plan);
  }

  [[nodiscard]] bool mapped(int rank) const {
    return shared_.mapped[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] bool sharing(int a, int b) const {
    return same_host(a, b) && mapped(a) && mapped(b);
  }

  [[nodiscard]] Topology describe() const {
    Topology topology;
    topology.places = places_of(facts_);
    topology.ring = ring_;
    for (const ScheduleEdge& edge : edges_) {
      topology.edges.push_back(described(edge));
      const Edge& last = topology.edges.back();
      if (last.carrier == Carrier::mpi && options_.carrier == CarrierChoice::shm) {
        throw TransportError(
            fmt::format("CarrierChoice::shm refuses the edge from rank {} to rank {}: {}; choose "
                        "CarrierChoice::automatic to allow MPI there",
                        last.from, last.to, last.reason));
      }
      if (last.from == rank_) {
        log(LogLevel::info, "rank {} of {}: to rank {} by {} ({})", rank_, bootstrap_.size(),
            last.to, name(last.carrier), last.reason);
      }
    }
    return topology;
  }

  [[nodiscard]] Edge described(const ScheduleEdge& edge) const {
    const auto [from, to] = edge.ranks;
    Edge result{from, to, Carrier::mpi, {}, edge.in_ring()};
    if (options_.carrier == CarrierChoice::mpi) {
      result.reason = "CarrierChoice::mpi";
    } else if (!same_host(from, to)) {
      result.reason = fmt::format("hosts {} and {}", host_of(from), host_of(to));
    } else if (!sharing(from, to)) {
      const int culprit = mapped(from) ? to : from;
      result.reason = fmt::format("one host, but rank {} {}", culprit,
                                  shared_.reasons[static_cast<std::size_t>(culprit)]);
      if (from == rank_) {
        log(LogLevel::warning, "rank {}: falls back to MPI towards rank {}: {}", rank_, to,
            result.reason);
      }
    } else {
      result.carrier = Carrier::shm;
      result.reason = fmt::format("host {}", host_of(from));
    }
    return result;
  }

  void connect(Wiring& wiring, const PumpFactory& make_pump) const {
    wiring.segment = segment_;
    for (int rank = 0; rank < bootstrap_.size(); ++rank) {
      if (rank == rank_ || sharing(rank, rank_)) wiring.ranks_sharing.push_back(rank);
    }
    // A box that not all can read is none.
    if (static_cast<int>(wiring.ranks_sharing.size()) == bootstrap_.size()) {
      wiring.one_shot_bytes = segment_->one_shot_bytes();
    }
    // The slots that a schedule may count on everywhere.
    wiring.ring_geometry = geometries_.link.ring;
    wiring.star_geometry = geometries_.link.star;
    for (const Edge& edge : wiring.topology.edges) {
      wiring.leaves_memory |= edge.in_ring && edge.carrier != Carrier::shm;
      if (edge.carrier != Carrier::shm) continue;
      (edge.in_ring ? wiring.ring_geometry : wiring.star_geometry) =
          geometries_.memory.of(edge.in_ring);
    }
    if (slowest_link_) wiring.nap = nap_for(*slowest_link_, geometries_.link.ring);
    wiring.doubling = has_doubling_;
    connect_segment(wiring, segment_edges_);
    connect_pump(wiring, make_pump);
    watch_peers(wiring);
    wiring.streaming_bytes = streaming_bytes(facts_[static_cast<std::size_t>(rank_)]);
    wiring.crowded = crowded(facts_of_host(rank_));
  }

  // FIFOs whose other side is the pump.
  void connect_pump(Wiring& wiring, const PumpFactory& make_pump) const {
    PumpEdges carried;
    const auto position = positions_of(ring_);
    bool any_mpi = false;
    for (std::size_t index = 0; index < edges_.size(); ++index) {
      const Edge& edge = wiring.topology.edges[index];
      const AlgorithmSet algorithms = edges_[index].algorithms;
      any_mpi |= edge.carrier == Carrier::mpi;
      if (edge.carrier != Carrier::mpi || (edge.from != rank_ && edge.to != rank_)) continue;
      const FifoGeometry& geometry = geometries_.link.of(edge.in_ring);
      carried.fifos.push_back(map_private(contiguous_fifo_bytes(geometry)));
      const FifoMemory fifo = contiguous_fifo(carried.fifos.back().data(), geometry);
      if (edge.from == rank_) {
        wiring.to[position[static_cast<std::size_t>(edge.to)]] = SendEnd(fifo);
        carried.out.push_back({edge.to, algorithms, 0, RecvEnd(fifo)});
      } else {
        wiring.from[position[static_cast<std::size_t>(edge.from)]] = RecvEnd(fifo);
        carried.in.push_back({edge.from, algorithms, 0, SendEnd(fifo)});
      }
    }
    // A rank without such an edge still hears of, and tells of, an abort.
    if (!any_mpi) return;
    for (int rank = 0; rank < bootstrap_.size(); ++rank) {
      if (rank != rank_ && !sharing(rank, rank_)) carried.ranks_elsewhere.push_back(rank);
    }
    carried.board = &wiring.segment->board();
    carried.session = facts_[0].session;
    wiring.pump = make_pump(std::move(carried));
  }

  void watch_peers(Wiring& wiring) const {
    const RankFacts& me = facts_[static_cast<std::size_t>(rank_)];
    for (const int rank : wiring.ranks_sharing) {
      const RankFacts& peer = facts_[static_cast<std::size_t>(rank)];
      if (rank == rank_) continue;
      if (peer.process_namespace != me.process_namespace) {
        say_unwatched(wiring, fmt::format("cannot watch the process of rank {}, which has process "
                                          "ids of its own (another container)",
                                          rank));
        continue;
      }
      const int error = wiring.peers.watch(rank, static_cast<int>(peer.process_id));
      if (error == 0) continue;
      say_unwatched(wiring, fmt::format("cannot watch process {} of rank {}: {}{}", peer.process_id,
                                        rank, std::strerror(error),
                                        error == EMFILE || error == ENFILE
                                            ? "; allow more open files (ulimit -n)"
                                            : ""));
    }
  }

  // In the log now, and in the TimeoutErrors that may come of it.
  void say_unwatched(Wiring& wiring, const std::string& text) const {
    log(LogLevel::warning, "rank {}: {}. If it is killed, calls end at their deadline", rank_,
        text);
    wiring.unwatched +=
        fmt::format(" This rank {}; if it has ended, nothing but a deadline shows it.", text);
  }

  Bootstrap& bootstrap_;
  const CommunicatorOptions& options_;
  int rank_;
  std::vector<RankFacts> facts_;
  std::vector<Place> keys_;
  std::vector<int> ring_;
  std::vector<ScheduleEdge> edges_;
  Geometries geometries_;
  bool has_doubling_ = false;  // edges for it
  std::optional<LinkFacts> slowest_link_;
  std::vector<SegmentEdge> segment_edges_;
  SharedMemory shared_;  // its mapping is the segment's
  std::shared_ptr<HostSegment> segment_;
};

}  // namespace

Wiring wire_processes(Bootstrap& bootstrap, const CommunicatorOptions& options,
                      const std::string& refusal, const LinkProbe& probe,
                      const PumpFactory& make_pump) {
  return ProcessWirer(bootstrap, options).wire(refusal, probe, make_pump);
}

}  // namespace rondo::detail
